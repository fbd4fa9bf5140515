export interface ServerEvent {
  event: string
  data: string
}

/** More than any event of the service; a stream without line ends must not fill the memory. */
const maxEventLength = 4 * 1024 * 1024

/**
 * Server-sent events of a body, https://html.spec.whatwg.org/multipage/server-sent-events.html. Comments come as events
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
      if (text.length > maxEventLength) throw new Error('An event of the stream has no end.')
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
