import { createReadStream } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { StemworkError } from '../../errors.js'
import type { AddressPolicy } from '../../fetch/address-guard.js'
import { guardedFetch } from '../../fetch/guarded-fetch.js'
import type { OutputFile } from '../../ports/runner.js'

export interface CopyOptions {
  signal: AbortSignal
  policy: AddressPolicy
  /** Waits before the second and later attempts; one attempt follows each. */
  retryDelaysMs?: readonly number[]
}

/**
 * Sends a result file to the client's storage: one PUT with a Content-Length, as presigned URLs require, without
 * redirects. Only the copy is retried, because running the whole job again would be expensive.
 *
 * @throws StemworkError `BAD_INPUT` with reason `copy_failed`.
 */
export async function copyResult(output: string, file: OutputFile, url: string, options: CopyOptions): Promise<void> {
  const { signal, policy, retryDelaysMs = [500, 2000] } = options
  let failure: unknown
  for (const delayMs of [0, ...retryDelaysMs]) {
    if (delayMs > 0) await delay(delayMs, undefined, { signal })
    try {
      const response = await guardedFetch(url, {
        method: 'PUT',
        headers: { 'content-type': file.contentType, 'content-length': String(file.bytes) },
        body: createReadStream(file.path),
        signal,
        // Only the status matters.
        maxBytes: Infinity,
        policy,
      })
      response.cancel()
      if (response.status >= 200 && response.status < 300) return
      failure = copyFailed(output, `the storage answered ${response.status}`)
      if (response.status < 500 && response.status !== 429) break
    } catch (error) {
      signal.throwIfAborted()
      failure = copyFailed(output, 'the storage could not be reached', error)
    }
  }
  throw failure
}

function copyFailed(output: string, what: string, cause?: unknown): StemworkError {
  return new StemworkError(
    'BAD_INPUT',
    `The result "${output}" could not be copied to the given URL: ${what}. Check that the URL accepts a PUT of a ` +
      'file and has not expired.',
    { reason: 'copy_failed', cause },
  )
}
