import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type RunningServer, serve, type ServeOptions } from '../../../src/http/mounts/node.js'
import { gate } from '../../engine/harness.js'
import { rawRequest } from './raw-request.js'

async function start(
  options: ServeOptions = {},
  handler = async () => new Response('{}'),
): Promise<RunningServer & { origin: string }> {
  const server = await serve(handler, { port: 0, ...options })
  onTestFinished(() => server.close({ timeoutMs: 0 }))
  return server
}

/** A connection, and all that it has received by the time it closes. */
function open({ port }: RunningServer, sent = ''): { socket: Socket; closed: Promise<string> } {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.on('data', (data) => (received += data.toString()))
  socket.on('error', () => {})
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(received)))
  if (sent) socket.write(sent)
  return { socket, closed }
}

describe('a server of ours', () => {
  test('limits the time of headers and idle connections, and their number, by default', async () => {
    const { server } = await start()
    expect([server.headersTimeout, server.timeout, server.maxConnections]).toEqual([60_000, 120_000, 1001])
    // No limit for a whole request: a large upload over a slow line may take hours.
    expect(server.requestTimeout).toBe(0)
  })

  test.each([
    ['says nothing', ''],
    ['begins a head and does not end it', 'GET / HTTP/1.1\r\nHost: x\r\nX-'],
  ])('answers a connection that %s with 408, and closes it', async (_what, sent) => {
    const server = await start({ headersTimeoutMs: 200 })
    const answer = await open(server, sent).closed
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ message: expect.stringMatching(/\S/) })
  })

  test('answers the requests that it has if it may take any time to close', async () => {
    const [asked, finish] = [gate(), gate<Response>()]
    const server = await start({}, () => (asked.open(), finish.opened))
    const { closed: answered } = open(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await asked.opened
    const closed = server.close({ timeoutMs: Infinity })
    await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, 20))])
    finish.open(new Response('here'))
    expect(await answered).toContain('here')
    await closed
  })

  test('closes a connection on which nothing moves in the middle of a body', async () => {
    const server = await start({ idleTimeoutMs: 200 }, () => new Promise<Response>(() => {}))
    expect(await open(server, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12').closed).toBe('')
  })

  test('accepts no more connections than its limit, and accepts more when others end', async () => {
    const ending = new AbortController()
    const answer = async () => {
      if (!ending.signal.aborted) await once(ending.signal, 'abort')
      return new Response('{}')
    }
    const server = await start({ maxConnections: 3 }, answer)
    const asking = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    let asked = 0
    server.server.on('request', () => asked++)
    const held = Array.from({ length: 3 }, () => open(server, asking))
    await expect.poll(() => asked).toBe(3)
    expect(await open(server, asking).closed).toBe('')
    ending.abort()
    for (const { closed } of held) expect(await closed).toMatch(/^HTTP\/1\.1 200 /)
    expect((await rawRequest(server.origin, [asking])).status).toBe(200)
  })

  test.each([
    ['say nothing', ''],
    ['begin a head and do not end it', 'GET / HTTP/1.1\r\nHost: x\r\nX-'],
    ['were answered, and begin another head', 'GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nX-'],
  ])('answers a client even if many connections of its address do that %s', async (_what, sent) => {
    const server = await start({ maxConnections: 8 })
    const silent = Array.from({ length: 12 }, () => open(server, sent))
    await Promise.all(silent.map(({ socket }) => once(socket, 'connect')))
    let closed = 0
    for (const one of silent) void one.closed.then(() => closed++)
    await expect.poll(() => closed, { timeout: 15_000 }).toBe(6)
    const asked = await rawRequest(server.origin, ['GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'])
    expect(asked.status).toBe(200)
    // The connection that had waited longest was closed.
    expect(closed).toBe(7)
  })

  test.skipIf(process.platform !== 'linux')(
    'keeps room for other addresses, whatever one does with its connections (needs the loopback network of Linux)',
    async () => {
      const server = await start({ maxConnections: 8 })
      const silent = Array.from({ length: 12 }, () => open(server))
      // Three quarters of all connections are left to them.
      let closed = 0
      for (const one of silent) void one.closed.then(() => closed++)
      await expect.poll(() => closed, { timeout: 15_000 }).toBe(6)
      const other = connect({ port: server.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
      onTestFinished(() => void other.destroy())
      other.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      const [answer] = (await once(other, 'data')) as [Buffer]
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /)
    },
  )

  test('closes connections that wait for a next request when there is no room', async () => {
    const server = await start({ maxConnections: 1 })
    const idle = open(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(idle.socket, 'data')
    open(server)
    expect(await idle.closed).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('answers no request in the middle of another answer', async () => {
    const half = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(Buffer.from('half')) })
    const server = await start({}, async () => new Response(half))
    const { socket, closed } = open(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(socket, 'data')
    socket.write('no request at all\r\n\r\n')
    expect(await closed).not.toContain('HTTP/1.1 400')
  })
})

describe('what node:http refuses by itself has a message', () => {
  test.each<[string, number, string[]]>([
    ['no HTTP at all', 400, ['HELLO\r\n\r\n']],
    ['two lengths', 400, ['POST / HTTP/1.1', 'Host: x', 'Content-Length: 1', 'Content-Length: 2', '', '']],
    ['no host', 400, ['GET / HTTP/1.1', '', '']],
    ['another expectation', 417, ['POST / HTTP/1.1', 'Host: x', 'Expect: wonders', 'Content-Length: 0', '', '']],
    ['a head that is too large', 431, ['GET / HTTP/1.1', 'Host: x', `X-Long: ${'x'.repeat(20_000)}`, '', '']],
  ])('%s: %i', async (_what, status, lines) => {
    const answer = await rawRequest((await start()).origin, [lines.join('\r\n')])
    expect([answer.status, answer.head]).toEqual([status, expect.stringContaining('content-type: application/json')])
    expect(JSON.parse(answer.body)).toMatchObject({ status, message: expect.stringMatching(/\S/) })
  })

  test('a request of HTTP/1.0 needs no host', async () => {
    expect((await rawRequest((await start()).origin, ['GET / HTTP/1.0\r\n\r\n'])).status).toBe(200)
  })
})
