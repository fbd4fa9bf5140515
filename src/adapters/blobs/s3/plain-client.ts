import type { S3Client } from '@aws-sdk/client-s3'

interface SendOptions {
  abortSignal?: AbortSignal
}

/** A slower body counts as not getting through. */
const minBytesPerSecond = 256 * 1024

/**
 * The host's client with two differences; the client itself is not changed.
 *
 * `requestChecksumCalculation` and `responseChecksumValidation` are `WHEN_REQUIRED`. At their default,
 * `WHEN_SUPPORTED`, the SDK sends headers that R2 and older servers refuse, and puts the CRC32 of an empty body into
 * every signed PUT URL. Bodies are covered by the signature's SHA-256 (and by TLS) in any case.
 *
 * Every call, with its retries, fails after `requestTimeoutMs` and what its body takes at 256 KiB/s: otherwise the SDK
 * waits forever on a connection that is dead without being closed.
 */
export function plainClient(client: S3Client, requestTimeoutMs: number): S3Client {
  const whenRequired = async () => 'WHEN_REQUIRED' as const
  const config: S3Client['config'] = {
    ...client.config,
    requestChecksumCalculation: whenRequired,
    responseChecksumValidation: whenRequired,
  }
  const plain = Object.create(client, { config: { value: config } }) as {
    send(command: unknown, options: SendOptions): Promise<unknown>
  }

  async function send(command: unknown, options: SendOptions = {}): Promise<unknown> {
    const timeoutMs = requestTimeoutMs + (bodyBytes(command) / minBytesPerSecond) * 1000
    const timeout = new AbortController()
    const abortSignal = AbortSignal.any([timeout.signal, ...(options.abortSignal ? [options.abortSignal] : [])])
    // Not left to the SDK alone: between two attempts it does not look at its signal.
    const aborted = new Promise<never>((_, reject) =>
      abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error), { once: true }),
    )
    const timer = setTimeout(
      () => timeout.abort(new Error(`The S3 server did not answer within ${Math.round(timeoutMs)} ms.`)),
      timeoutMs,
    )
    try {
      return await Promise.race([plain.send(command, { ...options, abortSignal }), aborted])
    } finally {
      clearTimeout(timer)
    }
  }
  return Object.create(plain, { send: { value: send } }) as S3Client
}

function bodyBytes(command: unknown): number {
  const { Body } = (command as { input: { Body?: unknown } }).input
  return Body instanceof Uint8Array ? Body.byteLength : 0
}
