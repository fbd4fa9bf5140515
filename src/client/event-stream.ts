import { badAnswer, ClientError, networkError, parsed } from './client-error.js'
import type { Connection, RequestOptions } from './connection.js'

export interface ServerEvent {
  event: string
  data: string
}

/** The service sends a heartbeat every 15 s, which a proxy that buffers the stream withholds. */
const silenceMs = 35_000

/** More characters than any event of the service has; a stream without line ends must not fill the memory. */
const maxEventLength = 4 * 1024 * 1024

/**
 * Yields the events of the stream at `path` until it ends. An error of the consumer is not one of the stream.
 *
 * @throws ClientError if the stream is refused, breaks or is silent for too long; the signal's reason
 */
export async function* readEvents(
  connection: Connection,
  path: string,
  { signal, isRepeatable = true }: RequestOptions & { isRepeatable?: boolean },
): AsyncGenerator<ServerEvent, void, undefined> {
  const stop = new AbortController()
  const onAbort = () => stop.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  let watchdog = setTimeout(() => stop.abort(), silenceMs)
  try {
    signal?.throwIfAborted()
    const { body, headers } = await connection.send(path, {
      headers: { accept: 'text/event-stream' },
      signal: stop.signal,
      isRepeatable,
    })
    if (!body || !headers.get('content-type')?.startsWith('text/event-stream')) {
      await body?.cancel()
      throw badAnswer(502, 'it is not an event stream')
    }
    for await (const event of serverEvents(body)) {
      clearTimeout(watchdog)
      watchdog = setTimeout(() => stop.abort(), silenceMs)
      yield event
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw ClientError.is(error) ? error : networkError(error)
  } finally {
    clearTimeout(watchdog)
    signal?.removeEventListener('abort', onAbort)
    stop.abort()
  }
}

/** The JSON of an event. @throws ClientError, as for a stream that broke */
export function eventValue<Value>({ data }: ServerEvent): Value {
  const value = parsed(data)
  if (value === undefined) throw badAnswer(502, 'an event is not JSON')
  return value as Value
}

/**
 * Server-sent events of a body, https://html.spec.whatwg.org/multipage/server-sent-events.html. Comments are events
 * with the name `''`, so that a caller sees that the stream is alive.
 */
export async function* serverEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      if (text.length > maxEventLength) throw new Error('An event in the stream is too long.')
      const blocks = text.split(/\r?\n\r?\n/)
      text = blocks.pop() ?? ''
      for (const block of blocks) yield eventOf(block)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

function eventOf(block: string): ServerEvent {
  let event: string | undefined
  const data: string[] = []
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
  return { event: event ?? (data.length > 0 ? 'message' : ''), data: data.join('\n') }
}
