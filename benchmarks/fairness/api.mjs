// A minimal client, over `node:http` with keep-alive connections.
import { Agent, request as httpRequest } from 'node:http'

/** @returns sends a request: `(path or whole URL, { method, body, headers })` gives `{ status, headers, text }` */
export function client(base, key, { sockets = 64 } = {}) {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets })
  return (path, { method = 'GET', body, headers = {} } = {}) =>
    new Promise((resolve, reject) => {
      const isLink = path.startsWith('http')
      const request = httpRequest(
        isLink ? path : base + path,
        {
          agent,
          method,
          headers: {
            ...(isLink ? {} : { authorization: key }),
            ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
            ...(isLink || body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
        },
        (response) => {
          const chunks = []
          response.on('data', (chunk) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () =>
            resolve({ status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }),
          )
        },
      )
      request.on('error', reject)
      request.end(body)
    })
}

export async function json(answer) {
  const { status, text } = await answer
  if (status !== 200) throw new Error(`The service answered ${status}: ${text.slice(0, 300)}`)
  return JSON.parse(text)
}

/**
 * Calls `work` `perSecond` times a second, however long a call takes, until the signal fires. Calls that a busy machine
 * delays are dropped.
 */
export async function atRate(perSecond, signal, work) {
  const running = new Set()
  const everyMs = 1000 / perSecond
  for (let dueAt = performance.now(); !signal.aborted; dueAt = Math.max(dueAt + everyMs, performance.now())) {
    const waitMs = dueAt - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    const one = work().finally(() => running.delete(one))
    running.add(one)
  }
  await Promise.all(running)
}
