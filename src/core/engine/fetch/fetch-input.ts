import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { guardedFetch, type GuardedFetchOptions } from './guarded-fetch.js'
import { httpFailure } from './fetch-failure.js'

export type FetchInputOptions = Pick<GuardedFetchOptions, 'signal' | 'maxBytes' | 'policy' | 'timeouts' | 'dial'>

/**
 * Downloads a client's file to `path`, which must not exist yet (so that a planted link fails), no faster than the disk
 * can write. Makes one attempt: `retryable` of an error says whether another one may succeed (broken connections, 5xx,
 * 429). Leaves no file behind on an error.
 *
 * @throws StemworkError as `guardedFetch` does, and with reason `download_http_<status>` for a status other than 200
 */
export async function fetchInput(
  url: string | URL,
  path: string,
  options: FetchInputOptions,
): Promise<{ bytes: number }> {
  const response = await guardedFetch(url, options)
  if (response.status !== 200) {
    response.cancel()
    throw httpFailure(response.status)
  }
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  try {
    await pipeline(response.body, file, { signal: options.signal })
  } catch (error) {
    await rm(path, { force: true })
    options.signal?.throwIfAborted()
    throw error
  }
  return { bytes: file.bytesWritten }
}
