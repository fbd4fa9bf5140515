import { __Client as Client, type S3Client } from '@aws-sdk/client-s3'

interface SendOptions {
  abortSignal?: AbortSignal
  requestTimeout?: number
}

/** A body that is sent more slowly counts as stuck. */
const minBytesPerSecond = 256 * 1024
/** S3 may take minutes to join the parts of a large object. */
const joinMsPerPart = 250

/**
 * A client with the host's settings, connections and middleware, whose `requestChecksumCalculation` and
 * `responseChecksumValidation` are `WHEN_REQUIRED`. At their default, `WHEN_SUPPORTED`, the SDK sends headers that R2
 * and older servers refuse, and puts the CRC32 of an empty body into every signed PUT URL. Bodies are covered by the
 * signature's SHA-256 (and by TLS) in any case.
 */
export function plainClient({ config, middlewareStack }: S3Client): S3Client {
  const whenRequired = async () => 'WHEN_REQUIRED' as const
  // The base class takes resolved settings as they are; `S3Client` would resolve them again and spoil the retries.
  const plain: S3Client = new Client({
    ...config,
    requestChecksumCalculation: whenRequired,
    responseChecksumValidation: whenRequired,
  })
  plain.middlewareStack = middlewareStack
  return plain
}

/**
 * The client's `send`, which fails after `requestTimeoutMs` for a call with all its retries, plus the time that its
 * body takes at 256 KiB/s and the server to join parts: otherwise the SDK waits forever on a connection that is dead
 * without being closed.
 */
export function timedSend(client: S3Client, requestTimeoutMs: number): S3Client['send'] {
  const unlimited = client.send.bind(client) as (command: unknown, options: SendOptions) => Promise<unknown>

  async function send(command: unknown, options: SendOptions = {}): Promise<unknown> {
    const joinMs = partsToJoin(command) * joinMsPerPart
    const timeoutMs = requestTimeoutMs + (bodyBytes(command) / minBytesPerSecond) * 1000 + joinMs
    // A limit of the host's client is for calls that are answered at once.
    if (joinMs > 0) options = { ...options, requestTimeout: timeoutMs }
    const timeout = new AbortController()
    const abortSignal = AbortSignal.any([timeout.signal, ...(options.abortSignal ? [options.abortSignal] : [])])
    // Not left to the SDK alone: between two attempts it does not look at its signal.
    let onAbort = () => {}
    const aborted = new Promise<never>((_, reject) => (onAbort = () => reject(abortSignal.reason as Error)))
    abortSignal.addEventListener('abort', onAbort)
    const timer = setTimeout(
      () => timeout.abort(new Error(`The S3 server did not answer within ${Math.round(timeoutMs)} ms.`)),
      timeoutMs,
    )
    try {
      return await Promise.race([unlimited(command, { ...options, abortSignal }), aborted])
    } finally {
      clearTimeout(timer)
      // As long as a combined signal has a listener, Node 20 keeps it, and with it the request and its body.
      abortSignal.removeEventListener('abort', onAbort)
    }
  }
  return send as S3Client['send']
}

function bodyBytes(command: unknown): number {
  const { Body } = (command as { input: { Body?: unknown } }).input
  return Body instanceof Uint8Array ? Body.byteLength : 0
}

function partsToJoin(command: unknown): number {
  const { MultipartUpload } = (command as { input: { MultipartUpload?: { Parts?: unknown[] } } }).input
  return MultipartUpload?.Parts?.length ?? 0
}
