import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, createConnection } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { setImmediate as immediate, setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { EngineSettings } from '../../../src/core/engine/options.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { liveService } from '../../../src/live.js'
import { createHandler, type HandlerSettings } from '../../../src/http/index.js'
import type { SeparateLive } from '../../../src/http/options.js'
import { acceptUpgrades, listener } from '../../../src/http/mounts/node.js'
import { writeModel } from '../../separation/models.js'
import { maskNetwork } from '../../separation/onnx-graph.js'
import { noise } from '../../separation/tracks.js'
import { type Service, serviceOfTest, startService } from '../harness.js'
import { temporaryFolder } from '../../temporary-folder.js'

/** The members used of the package `ws`, which has no types. */
interface Client extends NodeJS.EventEmitter {
  send(message: Uint8Array | string, sent?: (error?: Error) => void): void
  pause(): void
  terminate(): void
}
const library = 'ws'
const { WebSocket, WebSocketServer } = (await import(library)) as {
  WebSocket: new (address: string, options?: { headers: Record<string, string> }) => Client
  WebSocketServer: new (options: { noServer: true }) => {
    handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, opened: (one: Client) => void): void
  }
}

const rate = 8000
/** Bytes per second of 16-bit mono. */
const secondBytes = 2 * rate

const folder = temporaryFolder()
/** A model whose vocals are the mixture. */
let identity: string
beforeAll(async () => {
  identity = await writeModel(join(folder, 'identity'), maskNetwork())
})

let service: Service
beforeEach(async () => {
  const separate = liveService({ model: identity })
  service = await startService({ http: { live: { separate, streams: 2 } } })
})
afterEach(() => service.close())

const query = `sampleRate=${rate}&channels=1&stem=vocals&latencyMs=300`

function connect(key = service.app.key, asked = query, base = service.base): Client {
  const address = base.replace('http:', 'ws:')
  return new WebSocket(`${address}/live?${asked}`, { headers: { authorization: key } })
}

/** Returns a client whose stream has begun. */
async function opened({ app, base }: Service = service): Promise<Client> {
  const client = connect(app.key, query, base)
  await once(client, 'open')
  return client
}

/** All messages until the connection ends. */
async function received(client: Client) {
  const binary: Uint8Array[] = []
  const texts: string[] = []
  client.on('message', (data: Buffer, isBinary: boolean) => (isBinary ? binary.push(data) : texts.push(String(data))))
  const [code, reason] = (await once(client, 'close')) as [number, Buffer]
  return { bytes: Buffer.concat(binary), texts, code, reason: String(reason) }
}

/** Status and error of a request that does not become a WebSocket. */
async function refusal(client: Client) {
  client.on('error', () => undefined)
  const [, answer] = (await once(client, 'unexpected-response')) as [
    unknown,
    NodeJS.ReadableStream & { statusCode: number },
  ]
  let text = ''
  for await (const piece of answer) text += String(piece)
  return { status: answer.statusCode, code: (JSON.parse(text) as { code: string }).code }
}

/** A request for an upgrade to another protocol. */
function asking(path: string, headers: string[], method = 'GET'): string {
  const handshake = ['Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`]
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: Upgrade', ...handshake, ...headers]
  return `${lines.join('\r\n')}\r\n\r\n`
}

describe('a live stream', () => {
  test('comes back as its stem, of the same length, and says how it went', async () => {
    const client = await opened()
    const all = received(client)
    const samples = Int16Array.from(noise(3 * rate), (value) => 20_000 * value)
    const bytes = new Uint8Array(samples.buffer)
    // Some cuts lie within a sample.
    for (let at = 0; at < bytes.length; at += 1001) client.send(bytes.subarray(at, at + 1001))
    client.send('end')
    const { bytes: found, texts, code } = await all
    expect(found.length).toBe(bytes.length)
    expect(code).toBe(1000)
    expect(texts.map((text) => JSON.parse(text) as object)).toEqual([
      { type: 'end', seconds: 3, lateBlocks: expect.any(Number), lateSeconds: expect.any(Number) },
    ])
  })

  test('has no samples after its end, and is not charged for any', async () => {
    const charges = vi.spyOn(service.engine, 'chargeAudio')
    const client = await opened()
    const all = received(client)
    const samples = new Uint8Array(secondBytes)
    for (const message of [samples, 'end', samples, samples, 'more']) client.send(message)
    const { bytes, texts, code } = await all
    expect({ bytes: bytes.length, code }).toEqual({ bytes: secondBytes, code: 1000 })
    expect(texts.map((text) => JSON.parse(text) as object)).toEqual([expect.objectContaining({ seconds: 1 })])
    expect(charges.mock.calls.reduce((sum, [, seconds]) => sum + seconds, 0)).toBeCloseTo(1)
  })

  test('is served by a server of the host, too, once it accepts upgrades', async () => {
    const separate = liveService({ model: identity })
    const handler = createHandler(service.engine, { live: { separate, streams: 1 } })
    const server = createServer(listener(handler)).listen(0, '127.0.0.1')
    acceptUpgrades(server, handler)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const headers = { authorization: service.app.key }
    const client = new WebSocket(`ws://127.0.0.1:${port}/live?${query}`, { headers })
    await once(client, 'open')
    const all = received(client)
    client.send(new Uint8Array(secondBytes))
    client.send('end')
    expect(await all).toMatchObject({ code: 1000, bytes: { length: secondBytes } })
    server.close()
  })

  test('shares a server of the host with other WebSockets, and is below the path of its mount', async () => {
    const handler = createHandler(service.engine, { live: { separate: liveService({ model: identity }), streams: 1 } })
    const server = createServer(listener(handler, { path: '/v1' })).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    acceptUpgrades(server, handler, { path: '/v1' })
    const chat = new WebSocketServer({ noServer: true })
    server.on('upgrade', (request, socket, head) => {
      // Later, as by a host that looks up a session first.
      const open = () => chat.handleUpgrade(request, socket, head, (one) => one.send('hello'))
      if (request.url === '/chat') setTimeout(open, 50)
    })
    await once(server, 'listening')
    const base = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    const other = new WebSocket(`${base}/chat`)
    expect(String((await once(other, 'message'))[0])).toBe('hello')
    other.terminate()
    const client = new WebSocket(`${base}/v1/live?${query}`, { headers: { authorization: service.app.key } })
    await once(client, 'open')
    client.send('end')
    expect(await received(client)).toMatchObject({ code: 1000 })
  })

  test('shares a server with those of other handlers, and none of their requests stays without an answer', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    const live = { separate: liveService({ model: identity }), streams: 1 }
    const paths = ['/one', '/two']
    const handlers = paths.map(() => createHandler(service.engine, { live }))
    for (const [index, handler] of handlers.entries()) acceptUpgrades(server, handler, { path: paths[index] })
    server.on('request', listener(handlers[1]!, { path: '/two' }))
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const path of paths) {
      const headers = { authorization: service.app.key }
      const client = new WebSocket(`ws://127.0.0.1:${port}${path}/live?${query}`, { headers })
      await once(client, 'open')
      client.send('end')
      expect(await received(client)).toMatchObject({ code: 1000 })
    }
    const nowhere = new WebSocket(`ws://127.0.0.1:${port}/three/live`)
    expect(String((await once(nowhere, 'error'))[0])).toMatch(/404/)
    const other = createConnection(port, '127.0.0.1')
    other.write(asking('/two/workflow', ['Upgrade: h2c'], 'GET'))
    expect(String((await once(other, 'data'))[0])).toMatch(/^HTTP\/1\.1 401 /)
    other.destroy()
  })

  test('needs a key, valid parameters and a WebSocket', async () => {
    expect(await refusal(connect('stw_wrong'))).toEqual({ status: 401, code: 'UNAUTHORIZED' })
    expect(await refusal(connect(service.app.key, 'sampleRate=1'))).toEqual({ status: 400, code: 'BAD_INPUT' })
    const plain = await service.api(`/live?${query}`)
    expect([plain.status, plain.headers.get('upgrade')]).toEqual([426, 'websocket'])
    expect(await refusal(connect(service.app.key, `${query}&drums=1`))).toMatchObject({ status: 400 })
  })

  test('that is refused leaves no connection, though its client keeps its side open', async () => {
    const client = createConnection({ port: service.server.port, host: '127.0.0.1', allowHalfOpen: true })
    onTestFinished(() => void client.destroy())
    client.write(asking(`/v1/live?${query}`, ['Upgrade: websocket']))
    await once(client.resume(), 'end')
    await expect.poll(() => promisify(service.server.server.getConnections.bind(service.server.server))()).toBe(0)
  })

  test('is at one address only; a request for a file as a stream takes no slot', async () => {
    const one = await serviceOfTest({
      http: { live: { separate: liveService(), streams: 1 }, limits: { downloads: 1 } },
    })
    const link = new URL(await one.uploaded(new Uint8Array(100)))
    const client = createConnection(one.server.port, '127.0.0.1')
    client.end(asking(link.pathname + link.search, ['Upgrade: websocket']))
    expect(await textOf(client)).toMatch(/^HTTP\/1\.1 400 [^]*No WebSocket can be opened here/)
    expect((await fetch(link)).status).toBe(200)
  })

  test('is one protocol for which a client can ask; with another, the request is answered normally', async () => {
    const client = createConnection(service.server.port, '127.0.0.1')
    const body = '{"name":"song"}'
    const facts = [`Authorization: ${service.app.key}`, 'Content-Type: application/json', 'Upgrade: h2c']
    const asked = (length: number) => asking('/v1/job', [...facts, `Content-Length: ${length}`], 'POST') + body
    for (let times = 0; times < 20; times++) {
      client.write(asked(body.length))
      expect(String((await once(client, 'data'))[0])).toMatch(/^HTTP\/1\.1 400 [^]*workflow/)
    }
    expect(await promisify(service.server.server.getConnections.bind(service.server.server))()).toBe(1)
    client.destroy()
  })

  test('counts against the quota of its application, which ends it, and refuses the next one and jobs', async () => {
    await service.engine.setLimits(service.app.id, { audioMinutes: 0.1 })
    const client = await opened()
    const all = received(client)
    for (let second = 0; second < 14; second++) client.send(new Uint8Array(secondBytes))
    expect(await all).toMatchObject({ code: 1008, reason: expect.stringMatching(/0\.1 minutes of audio/) })
    const { used } = await service.engine.limits(service.app.id)
    expect(used.audioSeconds).toBeGreaterThanOrEqual(6)
    expect(await refusal(connect())).toEqual({ status: 429, code: 'QUOTA_EXCEEDED' })
    const inputUrl = await service.uploaded(new Uint8Array(10))
    const refused = await service.submit({ name: 'song', params: { inputUrl } })
    expect(await refused.json()).toMatchObject({ code: 'QUOTA_EXCEEDED' })
  })

  test('gives way to another application if one has all of them', async () => {
    const [first, second] = [connect(), connect()]
    await Promise.all([once(first, 'open'), once(second, 'open')])
    const third = await opened()
    expect(await received(third)).toMatchObject({ code: 1013, reason: 'All live streams are taken. Try again later.' })
    const lost = Promise.race([received(first), received(second)])
    const other = connect((await service.addApplication('Other')).key)
    await once(other, 'open')
    expect(await lost).toMatchObject({ code: 1013, reason: expect.stringMatching(/Other applications needed/) })
    other.terminate()
    first.terminate()
    second.terminate()
  })

  test('that finds no room may break the protocol without harm to the server', async () => {
    const first = await opened()
    const second = await opened()
    // The connection stays open until its client has answered, and its input is still read.
    const socket = createConnection(Number(new URL(service.base).port), '127.0.0.1')
    socket.write(asking(`/v1/live?${query}`, ['Upgrade: websocket', `Authorization: ${service.app.key}`]))
    await expect.poll(() => String(socket.read() ?? '')).toContain('All live streams are taken')
    const harm = vi.fn()
    process.on('uncaughtException', harm)
    onTestFinished(() => void process.off('uncaughtException', harm))
    // A frame with reserved bits.
    socket.end(Buffer.from([0xff, 0x80, 0, 0, 0, 0]))
    await once(socket.resume(), 'close')
    expect(harm).not.toHaveBeenCalled()
    for (const client of [first, second]) client.terminate()
  })

  test('makes room when its client is gone', async () => {
    for (let turn = 0; turn < 4; turn++) {
      const client = await opened()
      const all = received(client)
      client.send(new Uint8Array(secondBytes))
      client.send('end')
      expect((await all).code).toBe(1000)
      const gone = await opened()
      gone.terminate()
      await once(gone, 'close')
    }
  })

  test('is refused with the message that it did not understand', async () => {
    const client = await opened()
    const all = received(client)
    client.send('{"hello":1}')
    expect(await all).toMatchObject({ code: 1007, reason: expect.stringMatching(/binary messages/) })
  })
})

describe('a client', () => {
  const heartbeatMs = 150

  /** Echoes the samples, at the given pace. */
  function echo(bytesPerSecond: number): SeparateLive {
    return async function* (samples) {
      for await (const bytes of samples) {
        await delay((1000 * bytes.length) / bytesPerSecond)
        yield { bytes, seconds: bytes.length / secondBytes, isLate: false }
      }
    }
  }

  /** Starts a service that allows one stream at a time, for the duration of the test. */
  async function startLive(
    separate: SeparateLive,
    limits: HandlerSettings['limits'] = {},
    engine: EngineSettings = {},
  ): Promise<Service> {
    return serviceOfTest({ http: { live: { separate, streams: 1 }, limits }, engine })
  }

  test('that reads nothing is disconnected, and what it sends is not read', async () => {
    const live = await startLive(echo(Infinity), { heartbeatMs })
    const client = await opened(live)
    const closed = once(client, 'close')
    client.pause()
    const [megabytes, megabyte] = [64, new Uint8Array(2 ** 20)]
    let gone = 0
    for (let sent = 0; sent < megabytes; sent++) client.send(megabyte, (error) => (gone += error ? 0 : 1))
    // The client does not read the end of its connection either, so the next client shows it.
    await expect
      .poll(
        async () => {
          const next = await opened(live)
          const all = received(next)
          next.send(new Uint8Array(100))
          next.send('end')
          return (await all).code
        },
        { interval: 100 },
      )
      .toBe(1000)
    // The kernels' buffers on both sides hold only a few megabytes.
    expect(gone).toBeLessThan(megabytes / 2)
    client.terminate()
    await closed
  })

  test('that sends thousands of short messages at once leaves time for others between them', async () => {
    let [messages, passes] = [0, 0]
    const counted = () => {
      passes++
      pass = setImmediate(counted)
    }
    let pass = setImmediate(counted)
    onTestFinished(() => clearImmediate(pass))
    const separate: SeparateLive = async function* (samples) {
      passes = 0
      for await (const { length } of samples) messages += length
      yield { bytes: new Uint8Array(1), seconds: 0, isLate: false }
    }
    const client = await opened(await startLive(separate))
    const all = received(client)
    for (let sent = 0; sent < 5000; sent++) client.send(new Uint8Array(1))
    client.send('end')
    expect((await all).code).toBe(1000)
    expect(messages).toBe(5000)
    expect(passes).toBeGreaterThan(2500)
  })

  test('that sends short messages without end is held back after some thousands', async () => {
    let waiting = 0
    const separate: SeparateLive = async function* (samples) {
      // One message arrives in each of these passes.
      for (let pass = 0; pass < 20_000; pass++) await immediate()
      let isSamePass = true
      setImmediate(() => (isSamePass = false))
      for await (const { length } of samples) waiting += isSamePass ? length : 0
      yield { bytes: new Uint8Array(1), seconds: 0, isLate: false }
    }
    const client = await opened(await startLive(separate))
    const all = received(client)
    for (let sent = 0; sent < 30_000; sent++) client.send(new Uint8Array(1))
    client.send('end')
    expect((await all).code).toBe(1000)
    expect(waiting).toBeGreaterThan(500)
    // Messages of a single read arrive in any case: 64 KiB, of 7 bytes each.
    expect(waiting).toBeLessThan(11_000)
  })

  test('is told what the host refuses, in any language', async () => {
    const live = await startLive(async function* (samples) {
      for await (const bytes of samples) {
        if (bytes.length > 0) throw new StemworkError('BAD_INPUT', 'このストリームは再生できません。'.repeat(9))
        yield { bytes, seconds: 0, isLate: false }
      }
    })
    const client = await opened(live)
    client.send(new Uint8Array(secondBytes))
    expect(await received(client)).toMatchObject({
      code: 1007,
      reason: 'このストリームは再生できません。'.repeat(3).slice(0, 41),
    })
  })

  test('that sends next to nothing loses its stream', async () => {
    const client = await opened(await startLive(echo(Infinity), { idleMs: 100 }))
    client.send(new Uint8Array(10))
    expect(await received(client)).toMatchObject({ code: 1008, reason: expect.stringMatching(/Too few samples/) })
  })

  test('that breaks its connection is not reported as a failure of the service', async () => {
    const error = vi.fn()
    const live = await startLive(echo(Infinity), {}, { logger: { ...silentLogger, error } })
    const client = await opened(live)
    client.pause()
    for (let sent = 0; sent < 20; sent++) client.send(new Uint8Array(2 ** 20))
    await delay(100)
    client.terminate()
    const next = async () => {
      const other = await opened(live)
      other.send('end')
      return (await received(other)).code
    }
    await expect.poll(next, { interval: 100 }).toBe(1000)
    expect(error).not.toHaveBeenCalled()
  })

  test('is told how much passed unchanged because the service was too slow', async () => {
    const separate: SeparateLive = async function* (samples) {
      let isLate = false
      for await (const bytes of samples)
        yield { bytes, seconds: bytes.length / secondBytes, isLate: (isLate = !isLate) }
    }
    const client = await opened(await startLive(separate))
    const all = received(client)
    for (let sent = 0; sent < 5; sent++) client.send(new Uint8Array(secondBytes / 2))
    client.send('end')
    const { texts } = await all
    expect(JSON.parse(texts[0] ?? '')).toEqual({ type: 'end', seconds: 2.5, lateBlocks: 3, lateSeconds: 1.5 })
  })

  test('that has sent everything at once may wait for a slow service', async () => {
    const live = await startLive(echo(2 ** 20), { heartbeatMs })
    const client = await opened(live)
    const all = received(client)
    // Its answers to pings are queued behind two seconds of samples.
    for (let sent = 0; sent < 64; sent++) client.send(new Uint8Array(2 ** 15))
    client.send('end')
    const { code, bytes } = await all
    expect([code, bytes.length]).toEqual([1000, 64 * 2 ** 15])
  })
})

test('there is none unless the host turns it on', async () => {
  const other = await serviceOfTest()
  expect((await other.api(`/live?${query}`)).status).toBe(404)
  expect(() => createHandler(other.engine, { live: { separate: 'x' as never } })).toThrow(/live\.separate/)
})
