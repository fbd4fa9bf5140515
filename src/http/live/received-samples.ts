import { badInput } from '../../core/engine/errors.js'
import type { WebSocketConnection } from '../routing/web-socket-connection.js'

/** Most bytes of samples that are received but not yet read; beyond this, the client has to wait. */
const mostBytes = 256 * 1024
/** Bytes counted for each message besides its samples. */
const messageBytes = 256

/** The binary messages of a client, up to its text message `end`. Read once. */
export function receivedSamples(socket: WebSocketConnection): AsyncGenerator<Uint8Array, void, void> {
  const queue: Uint8Array[] = []
  let bytes = 0
  let isEnded = false
  let failure: Error | undefined
  let wake: (() => void) | undefined
  socket.on('message', (data, isBinary) => {
    // Messages after `end` are not part of the stream, and not charged.
    if (isEnded) return
    if (isBinary) {
      queue.push(data)
      bytes += data.length + messageBytes
      if (bytes > mostBytes) socket.pause()
    } else if (String(data) === 'end') isEnded = true
    else failure = badInput('unsupported_format', 'Send samples as binary messages, and "end" as text at the end.')
    wake?.()
  })
  socket.on('close', () => {
    isEnded = true
    wake?.()
  })
  return received()

  async function* received() {
    for (;;) {
      if (failure) throw failure
      const next = queue.shift()
      if (next) {
        bytes -= next.length + messageBytes
        if (bytes <= mostBytes) socket.resume()
        yield next
      } else if (isEnded) return
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  }
}
