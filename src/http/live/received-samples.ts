import { badInput } from '../../core/engine/errors.js'
import type { WebSocketConnection } from '../routing/web-socket-connection.js'

/** Most bytes of samples that have come and are not yet read; beyond this, the client has to wait. */
const mostBytes = 256 * 1024
/** That a message takes besides its samples. */
const messageBytes = 256

/** The binary messages of a client, up to its text message `end`. Read once. */
export class ReceivedSamples implements AsyncIterable<Uint8Array> {
  readonly #socket: WebSocketConnection
  readonly #queue: Uint8Array[] = []
  #bytes = 0
  #isEnded = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  constructor(socket: WebSocketConnection) {
    this.#socket = socket
    socket.on('message', (data, isBinary) => {
      // Nothing belongs to the stream after `end`, nor is it charged.
      if (this.#isEnded) return
      if (isBinary) this.#add(data)
      else if (String(data) === 'end') this.#isEnded = true
      else
        this.#error = badInput('unsupported_format', 'Send samples as binary messages, and "end" as text at the end.')
      this.#wake?.()
    })
    socket.on('close', () => {
      this.#isEnded = true
      this.#wake?.()
    })
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    for (;;) {
      if (this.#error) throw this.#error
      const next = this.#queue.shift()
      if (next) {
        this.#bytes -= next.length + messageBytes
        if (this.#bytes <= mostBytes) this.#socket.resume()
        yield next
      } else if (this.#isEnded) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  #add(data: Uint8Array): void {
    this.#queue.push(data)
    this.#bytes += data.length + messageBytes
    if (this.#bytes > mostBytes) this.#socket.pause()
  }
}
