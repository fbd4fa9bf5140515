import { connect } from 'node:net'

/** The bytes received on a connection until the server closed it or `until` was seen. */
export interface RawAnswer {
  status: number
  head: string
  body: string
  /** True if the connection broke instead of ending. */
  broken: boolean
}

/**
 * Sends raw bytes and collects the answer, as a foreign client would. `pieces` are written one after another, each once
 * the network has taken the one before.
 */
export function rawRequest(
  url: string,
  pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  options: { end?: boolean } = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    const received: Buffer[] = []
    let broken = false
    let goOn = () => {}
    socket.on('drain', () => goOn())
    socket.on('close', () => goOn())
    socket.on('data', (chunk) => received.push(chunk))
    socket.on('error', () => (broken = true))
    socket.on('close', () => {
      const text = Buffer.concat(received).toString('latin1')
      const split = text.indexOf('\r\n\r\n')
      if (split < 0) return resolve({ status: 0, head: text, body: '', broken })
      const head = text.slice(0, split)
      resolve({ status: Number(head.split(' ')[1]), head: head.toLowerCase(), body: text.slice(split + 4), broken })
    })
    const send = async () => {
      try {
        for await (const piece of pieces) {
          if (!socket.writable) break
          if (!socket.write(piece)) await new Promise<void>((resolve) => (goOn = resolve))
        }
        if (options.end) socket.end()
      } catch (error) {
        reject(error)
      }
    }
    socket.on('connect', () => void send())
  })
}

/** `PUT` with `Transfer-Encoding: chunked` as its only header, as some clients send it. */
export function* chunkedPut(
  url: string,
  chunks: Iterable<string | Uint8Array>,
  headers = '',
): Generator<string | Uint8Array> {
  const { host, pathname, search } = new URL(url)
  yield (
    `PUT ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\nConnection: ` +
    `close\r\n${headers}\r\n`
  )
  for (const chunk of chunks) {
    yield `${chunk.length.toString(16)}\r\n`
    yield chunk
    yield '\r\n'
  }
  yield '0\r\n\r\n'
}
