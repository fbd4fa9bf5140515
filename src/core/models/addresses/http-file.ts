import { type ByteSource, type OpenedBytes, PermanentFailure, type ReadRequest } from './byte-source.js'

/** A server that sends nothing for this long is considered lost. */
const silenceMs = 60_000

/** A file on a web server. An interrupted download is continued with `Range`, if the file is unchanged. */
export function httpFile(url: string): ByteSource {
  return { name: url, open: (request) => openUrl(url, request) }
}

async function openUrl(url: string, { from, validator, signal }: ReadRequest): Promise<OpenedBytes> {
  const silence = new AbortController()
  const timer = setTimeout(
    () => silence.abort(new Error(`${hostOf(url)} sent nothing for ${silenceMs / 1000} seconds`)),
    silenceMs,
  )
  try {
    // A compressed response would not have the size and offsets of the file.
    const headers: Record<string, string> = { 'accept-encoding': 'identity' }
    if (from > 0) headers.range = `bytes=${from}-`
    if (from > 0 && validator !== undefined) headers['if-range'] = validator
    const response = await fetch(url, { headers, signal: AbortSignal.any([signal, silence.signal]) })
    if (response.status === 416 && from > 0) {
      await response.body?.cancel()
      clearTimeout(timer)
      return await openUrl(url, { from: 0, signal })
    }
    await refuseUnusable(url, response)
    const start = response.status === 206 ? rangeStart(response) : 0
    const length = Number(response.headers.get('content-length') ?? NaN)
    return {
      from: start,
      validator: validatorOf(response),
      totalBytes: Number.isInteger(length) ? start + length : undefined,
      chunks: untilSilent(response, timer),
    }
  } catch (error) {
    clearTimeout(timer)
    throw error
  }
}

async function* untilSilent({ body }: Response, timer: NodeJS.Timeout): AsyncGenerator<Uint8Array, void, void> {
  try {
    if (body === null) return
    for await (const chunk of body) {
      yield chunk
      timer.refresh()
    }
  } finally {
    clearTimeout(timer)
  }
}

async function refuseUnusable(url: string, response: Response): Promise<void> {
  const isDowngraded = url.startsWith('https:') && !response.url.startsWith('https:')
  if ((response.status === 200 || response.status === 206) && !isDowngraded) return
  await response.body?.cancel()
  if (isDowngraded)
    throw new PermanentFailure(`${hostOf(url)} redirects to ${response.url}, which is not encrypted; expected https:`)
  const message = `${hostOf(url)} answered with the HTTP status ${response.status} to ${url}`
  const isTransient = response.status >= 500 || response.status === 408 || response.status === 429
  throw isTransient ? new Error(message) : new PermanentFailure(message)
}

function rangeStart(response: Response): number {
  const match = /^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')
  if (match) return Number(match[1])
  throw new PermanentFailure(`${hostOf(response.url)} sent a part of the file without a Content-Range header`)
}

/** `If-Range` takes a strong entity tag or a date (RFC 9110, 13.1.5). */
function validatorOf({ headers }: Response): string | undefined {
  const tag = headers.get('etag')
  return (tag?.startsWith('"') ? tag : undefined) ?? headers.get('last-modified') ?? undefined
}

function hostOf(url: string): string {
  return new URL(url).host
}
