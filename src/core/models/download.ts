import { setTimeout as wait } from 'node:timers/promises'
import { type ByteSource, PermanentFailure } from './addresses/byte-source.js'
import { type PartialFile, openPartialFile } from './partial-file.js'

export interface DownloadOptions {
  /** Size of the file, if known. A longer response is rejected as soon as it exceeds this. */
  bytes?: number
  signal: AbortSignal
  /** `total` is absent while it is unknown. */
  onBytes?(done: number, total: number | undefined): void
  /**
   * Milliseconds before the first retry after a broken connection; doubled after each attempt without progress.
   * Default: 500.
   */
  retryDelayMs?: number
}

const maxFailures = 5

/**
 * Downloads a file to `path`, continuing a partial download from the same source. Broken connections are resumed. If
 * the download fails for good, the received bytes are kept, so that a later call continues.
 *
 * @returns `isResumed` says whether some of the bytes were received over an earlier connection
 * @throws the signal's reason; the last failure after five attempts in a row without progress
 */
export async function download(source: ByteSource, path: string, options: DownloadOptions) {
  const { signal, retryDelayMs = 500 } = options
  const partial = await openPartialFile(path, source.name)
  let isResumed = partial.bytes > 0
  try {
    for (let failures = 0; ;) {
      const before = partial.bytes
      try {
        if (partial.bytes !== options.bytes) await transfer(source, partial, options)
        return { bytes: partial.bytes, sha256: partial.sha256(), isResumed }
      } catch (error) {
        signal.throwIfAborted()
        failures = partial.bytes > before ? 0 : failures + 1
        if (error instanceof PermanentFailure || failures === maxFailures) throw error
        isResumed ||= partial.bytes > 0
      }
      await wait(retryDelayMs * 2 ** failures, undefined, { signal })
    }
  } finally {
    await partial.close()
  }
}

async function transfer(
  source: ByteSource,
  partial: PartialFile,
  { bytes, signal, onBytes }: DownloadOptions,
): Promise<void> {
  const opened = await source.open({ from: partial.bytes, validator: partial.validator, signal })
  if (opened.from !== partial.bytes || opened.from === 0) await partial.startOver(opened.validator)
  if (opened.from !== partial.bytes)
    throw new PermanentFailure(`${source.name} sent a different part of the file than requested`)
  const total = bytes ?? opened.totalBytes
  for await (const chunk of opened.chunks) {
    signal.throwIfAborted()
    if (total !== undefined && partial.bytes + chunk.length > total)
      throw new PermanentFailure(`${source.name} has more than the expected ${total} bytes`)
    await partial.append(chunk)
    onBytes?.(partial.bytes, total)
  }
  if (total !== undefined && partial.bytes < total)
    throw new Error(`${source.name} ended after ${partial.bytes} of ${total} bytes`)
}
