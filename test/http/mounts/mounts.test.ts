import { once } from 'node:events'
import { createServer, request as httpRequest, type Server } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import compression from 'compression'
import express from 'express'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { blobChunks } from '../../../src/adapters/blobs/shared/blob-chunks.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import type { BlobSource, BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { createHandler } from '../../../src/http/index.js'
import { expressMount } from '../../../src/http/mounts/express.js'
import { honoMount } from '../../../src/http/mounts/hono.js'
import { koaMount } from '../../../src/http/mounts/koa.js'
import { listener } from '../../../src/http/mounts/node.js'
import { type Framework, frameworks, type Host } from './frameworks.js'
import { type Service, serviceOfTest, startService } from '../harness.js'

const ignore = () => {}
const megabyte = 1024 * 1024
const globalsBefore = [globalThis.Request, globalThis.Response, globalThis.Headers, globalThis.fetch, globalThis.URL]

describe.each(frameworks)('mounted in $name', (framework: Framework) => {
  let service: Service
  let host: Host
  const sink = discardingBlobs()
  const errors: unknown[] = []

  beforeAll(async () => {
    service = await startService({
      blobs: sink.blobs,
      engine: { logger: { debug: ignore, info: ignore, warn: ignore, error: (fields) => void errors.push(fields) } },
    })
    host = await framework.start(service.handler)
  })
  afterAll(async () => {
    await host.close()
    await service.close()
  })

  const api = (path: string, init: RequestInit = {}) =>
    fetch(`${host.origin}/media/v1${path}`, {
      ...init,
      headers: { authorization: service.app.key, 'content-type': 'application/json' },
    })
  const newTicket = async () => (await (await api('/upload')).json()) as { uploadUrl: string; downloadUrl: string }

  test('the whole flow works, and links lead back to where the mount is', async () => {
    const ticket = await newTicket()
    expect(ticket.uploadUrl.startsWith(`${host.origin}/media/v1/storage/uploads/`)).toBe(true)
    expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: 'la la la' })).status).toBe(200)
    const created = await api('/job', {
      method: 'POST',
      body: JSON.stringify({
        workflow: 'service/stems-vocals-accompaniment',
        params: { inputUrl: ticket.downloadUrl },
      }),
    })
    const { id } = (await created.json()) as { id: string }
    let job: { status: string; result: Record<string, string> }
    do job = (await (await api(`/job/${id}`)).json()) as typeof job
    while (job.status === 'QUEUED' || job.status === 'STARTED')
    expect(job.status).toBe('SUCCEEDED')
    expect(job.result.vocals!.startsWith(`${host.origin}/media/v1/storage/results/${id}/`)).toBe(true)
    const file = await fetch(job.result.vocals!, { headers: { range: 'bytes=3-4' } })
    expect([file.status, file.headers.get('content-range'), await file.text()]).toEqual([206, 'bytes 3-4/8', 'la'])
    const head = await fetch(job.result.vocals!, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '8', ''])
    expect(await (await api(`/job/${id}`, { method: 'DELETE' })).json()).toEqual({ id })
  })

  test("the host's own routes are untouched, and unknown paths under the mount are ours", async () => {
    expect(await (await fetch(`${host.origin}/hello`)).text()).toBe('hello')
    const missing = await api('/nothing')
    expect(missing.status).toBe(404)
    expect(await missing.json()).toMatchObject({ code: 'NOT_FOUND' })
    expect((await api('/job', { method: 'PATCH' })).status).toBe(405)
    expect((await api('/job', { method: 'OPTIONS' })).status).toBe(204)
  })

  test('a 100 MB upload streams through in flat memory, however slow the store is', async () => {
    const { uploadUrl } = await newTicket()
    const total = 100 * megabyte
    const before = memoryInUse()
    // Sampled by bytes rather than by time: each sample collects garbage, and a slow machine would do little else.
    const growth: number[] = []
    sink.every(8 * megabyte, () => growth.push(memoryInUse() - before))
    sink.pauseFirst(200)
    const { status, sentBeforeFirstRead } = await putPattern(uploadUrl, total, sink.firstRead())
    sink.every(Infinity, ignore)
    expect(status).toBe(200)
    expect(sink.lastBytes()).toBe(total)
    expect(sentBeforeFirstRead).toBeLessThan(32 * megabyte)
    expect(growth.length).toBeGreaterThan(10)
    expect(Math.max(...growth)).toBeLessThan(64 * megabyte)
  })

  test('a client that goes away in the middle of an upload leaves nothing, and its ticket still works', async () => {
    const { uploadUrl, downloadUrl } = await newTicket()
    const failed = sink.nextFailure()
    const upload = httpRequest(uploadUrl, { method: 'PUT', headers: { 'transfer-encoding': 'chunked' } })
    upload.on('error', () => {})
    upload.write(Buffer.alloc(megabyte))
    await sink.firstRead()
    upload.destroy()
    await failed
    expect((await fetch(downloadUrl)).status).toBe(404)
    expect((await fetch(uploadUrl, { method: 'PUT', body: 'again' })).status).toBe(200)
    // The failure is the client's, not the service's.
    expect(errors).toEqual([])
  })

  test('a body that a parser of the host has read is taken from where the parser left it', async () => {
    const parsing = await framework.start(service.handler, { bodies: 'parsed' })
    onTestFinished(() => parsing.close())
    const headers = { authorization: service.app.key, 'content-type': 'application/json' }
    const post = (body: string) => fetch(`${parsing.origin}/media/v1/job`, { method: 'POST', body, headers })
    const created = await post('{"workflow":"service/held","params":{"note":"é"},"metadata":{"a":"b"}}')
    const { id } = (await created.json()) as { id: string }
    expect(created.status).toBe(200)
    expect(await service.engine.get(id)).toMatchObject({ params: { note: 'é' }, metadata: { a: 'b' } })
    await service.engine.delete(id)
    const wrong = await post('{"workflow":5}')
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { code: 'BAD_INPUT' }])
    const large = await post(JSON.stringify({ workflow: 'service/held', params: { note: 'x'.repeat(90_000) } }))
    expect(large.status).toBe(400)
    const ticket = (await (await fetch(`${parsing.origin}/media/v1/upload`, { headers })).json()) as {
      uploadUrl: string
    }
    const put = await fetch(ticket.uploadUrl, { method: 'PUT', body: 'song' })
    expect([put.status, await put.json()]).toMatchObject([200, { bytes: 4 }])
  })

  test('a body that is gone is answered with a message that names the cause', async () => {
    const reading = await framework.start(service.handler, { bodies: 'dropped' })
    onTestFinished(() => reading.close())
    const answer = await fetch(`${reading.origin}/media/v1/job`, {
      method: 'POST',
      body: JSON.stringify({ workflow: 'service/held', params: {} }),
      headers: { authorization: service.app.key, 'content-type': 'application/json' },
    })
    expect(answer.status).toBe(500)
    expect(((await answer.json()) as { message: string }).message).toContain('before your body parser')
  })
})

describe.each(['Express 4', 'Express 5', 'Koa with koa-body', 'Hono'])('a parser of texts in %s', (name) => {
  const framework = frameworks.find((one) => one.name === name)!

  test('does not change the bytes of a file: its upload is refused, unless it is a text', async () => {
    const service = await startService({ engine: { logger: silentLogger } })
    const host = await framework.start(service.handler, { bodies: 'text' })
    onTestFinished(async () => {
      await host.close()
      await service.close()
    })
    const put = async (body: Uint8Array) => {
      const headers = { authorization: service.app.key, 'content-type': 'text/plain' }
      const ticket = (await (await fetch(`${host.origin}/media/v1/upload`, { headers })).json()) as {
        uploadUrl: string
      }
      const answer = await fetch(ticket.uploadUrl, { method: 'PUT', body, headers })
      return [answer.status, await answer.text()]
    }
    const refusal = [500, expect.stringContaining('made a text of the file')]
    expect(await put(Buffer.from([0xff, 0xfb, 0x90, 0x64]))).toEqual(refusal)
    expect(await put(Buffer.from('la la lä'))).toEqual([200, expect.stringContaining('"bytes":9')])
  })
})

test('a handler of the host that fails is answered with 500 and logged, not by a broken connection', async () => {
  const written: string[] = []
  const { write } = process.stderr
  process.stderr.write = (text: string | Uint8Array) => written.push(String(text)) > 0
  const server = createServer(listener(() => Promise.reject(new Error('a bug of the host'))))
  try {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'INTERNAL_ERROR' }])
    expect(written.join('')).toContain('a bug of the host')
  } finally {
    process.stderr.write = write
    server.close()
  }
})

test('a response that middleware has made unusable ends its connection, not the process', async () => {
  const service = await serviceOfTest()
  const answer = listener(service.handler)
  const server = createServer((request, response) => {
    // As after @fastify/express and compression, which writes the headers a second time.
    response.writeHead = () => {
      throw new Error('headers are sent')
    }
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  await expect(fetch(`http://127.0.0.1:${port}/v1/livez`)).rejects.toMatchObject({ cause: { code: 'UND_ERR_SOCKET' } })
})

test.each([
  ['createHandler()', () => createHandler(undefined as never), 'takes an engine'],
  ['createHandler({})', () => createHandler({} as never), 'takes an engine'],
  ['expressMount(engine)', () => expressMount({} as never), 'that createHandler(engine) returns'],
  ['koaMount(undefined)', () => koaMount(undefined as never), 'that createHandler(engine) returns'],
  ['honoMount({})', () => honoMount({} as never), 'that createHandler(engine) returns'],
  ["koaMount(handler, { path: 'v1' })", () => koaMount(handlerOf(), { path: 'v1' }), 'must begin with "/"'],
  ["honoMount(handler, { path: 'v1' })", () => honoMount(handlerOf(), { path: 'v1' }), 'must begin with "/"'],
  ["listener(handler, { path: 'v1' })", () => listener(handlerOf(), { path: 'v1' }), 'must begin with "/"'],
])('%s is refused when it is called', (_call, mount, words) => {
  expect(mount).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS', message: expect.stringContaining(words) }))
})

const handlerOf = () => async () => new Response()

test('the node:http listener returns a promise of its answer, which fromNodeMiddleware of h3 waits for', async () => {
  const service = await serviceOfTest()
  const answer = listener(service.handler)
  const server = createServer()
  const isEnded = once(server, 'request').then(async (exchange) => {
    const [request, response] = exchange as Parameters<typeof answer>
    await answer(request, response)
    return response.writableEnded
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  await fetch(`http://127.0.0.1:${port}/v1/upload`)
  expect(await isEnded).toBe(true)
})

test('the node:http listener serves HTTP/2 too', async () => {
  const service = await serviceOfTest({ engine: { limits: { maxFileBytes: 10 } } })
  const server = createHttp2Server(listener(service.handler) as unknown as Parameters<typeof createHttp2Server>[1])
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = connectHttp2(`http://127.0.0.1:${port}`)
  const send = async (method: string, path: string, body?: string) => {
    const stream = client.request({ ':method': method, ':path': path, authorization: service.app.key })
    stream.end(body)
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    let text = ''
    for await (const chunk of stream) text += String(chunk)
    return { status: headers[':status'], json: JSON.parse(text) as Record<string, string> }
  }
  const { uploadUrl } = (await send('GET', '/v1/upload')).json
  const { origin, pathname, search } = new URL(uploadUrl!)
  expect(origin).toBe(`http://127.0.0.1:${port}`)
  expect(await send('PUT', pathname + search, 'x'.repeat(100))).toMatchObject({
    status: 413,
    json: { code: 'TOO_LARGE' },
  })
  expect(await send('PUT', pathname + search, 'song')).toMatchObject({ status: 200, json: { bytes: 4 } })
  client.close()
  server.close()
})

describe('behind a middleware of the host that compresses', () => {
  let service: Service
  let server: Server
  let base: string
  let headers: Record<string, string>

  beforeAll(async () => {
    service = await startService()
    headers = { authorization: service.app.key, 'content-type': 'application/json' }
    const app = express()
    // Compresses any type: it replaces `response.write`, and calls nobody back.
    app.use(compression({ filter: () => true }))
    app.use('/media', expressMount(service.handler))
    server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/media/v1`
  })
  afterAll(async () => {
    server.close()
    await service.close()
  })

  test('a file arrives complete, and a part of it as it is stored', async () => {
    const ticket = await (await fetch(`${base}/upload`, { headers })).json()
    const { uploadUrl, downloadUrl } = ticket as { uploadUrl: string; downloadUrl: string }
    // Larger than a chunk, and all chunks differ.
    const text = Array.from({ length: 100_000 }, (_, line) => `line ${line}`).join('\n')
    await fetch(uploadUrl, { method: 'PUT', body: text })
    const warnings: string[] = []
    const note = ({ message }: Error) => void warnings.push(message)
    process.on('warning', note)
    const answer = await fetch(downloadUrl)
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(await answer.text()).toBe(text)
    process.off('warning', note)
    // It removes no listener, so each wait for the client would leave one.
    expect(warnings).toEqual([])
    const part = await fetch(downloadUrl, { headers: { range: 'bytes=7-9999', 'accept-encoding': 'gzip' } })
    expect([part.status, part.headers.get('content-encoding'), part.headers.get('content-length')]).toEqual([
      206,
      null,
      '9993',
    ])
    expect(await part.text()).toBe(text.slice(7, 10_000))
  })

  test('events arrive when they happen', async () => {
    const body = '{"workflow":"service/held","params":{}}'
    const { id } = (await (await fetch(`${base}/job`, { method: 'POST', headers, body })).json()) as { id: string }
    for (const path of [`/job/${id}/events`, '/job/events']) {
      const answer = await fetch(base + path, { headers })
      expect(answer.headers.get('content-encoding')).toBeNull()
      let text = ''
      for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk
        if (text.includes('event: ')) break
      }
      expect(text).toMatch(/^(retry: 2000\n+)?event: (job|ready)/)
    }
    await service.engine.delete(id)
  })
})

test('no global is replaced', () => {
  expect([globalThis.Request, globalThis.Response, globalThis.Headers, globalThis.fetch, globalThis.URL]).toEqual(
    globalsBefore,
  )
})

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/**
 * Memory that the process uses for data, without garbage: how much V8 accumulates differs between Node.js
 * versions.
 */
function memoryInUse(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

async function putPattern(
  url: string,
  total: number,
  firstRead: Promise<void>,
): Promise<{ status: number; sentBeforeFirstRead: number }> {
  const block = Buffer.alloc(256 * 1024, 'pattern ')
  const upload = httpRequest(url, { method: 'PUT', headers: { 'transfer-encoding': 'chunked' } })
  const answered = once(upload, 'response')
  let sent = 0
  let sentBeforeFirstRead = -1
  void firstRead.then(() => (sentBeforeFirstRead = sent))
  while (sent < total) {
    const room = upload.write(block.subarray(0, Math.min(block.length, total - sent)))
    sent += block.length
    if (!room) await once(upload, 'drain')
  }
  upload.end()
  const [response] = await answered
  response.resume()
  return { status: response.statusCode, sentBeforeFirstRead }
}

/** A blob store that keeps small files and counts large ones. */
function discardingBlobs() {
  const inner = memoryBlobs()
  let pauseMs = 0
  let bytes = 0
  let onFirstRead = () => {}
  let onFailure = () => {}
  let lookEvery = Infinity
  let look: () => unknown = ignore
  const blobs: BlobStore = {
    ...inner,
    traits: inner.traits,
    // The empty mark of a used ticket is not a client's file.
    put: (key, source, options) => inner.put(key, key.endsWith('.used') ? source : watched(source), options),
    get: (key, options) => inner.get(key, options),
    stat: (key) => inner.stat(key),
    delete: (key) => inner.delete(key),
    deletePrefix: (prefix) => inner.deletePrefix(prefix),
    list: (prefix) => inner.list(prefix),
  }
  async function* watched(source: BlobSource) {
    bytes = 0
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    pauseMs = 0
    try {
      for await (const chunk of blobChunks(source)) {
        if (bytes === 0) onFirstRead()
        if (Math.floor(bytes / lookEvery) < Math.floor((bytes + chunk.byteLength) / lookEvery)) look()
        bytes += chunk.byteLength
        if (bytes <= megabyte) yield chunk
      }
    } catch (error) {
      onFailure()
      throw error
    }
  }
  return {
    blobs,
    pauseFirst: (milliseconds: number) => void (pauseMs = milliseconds),
    lastBytes: () => bytes,
    /** Calls `then` each time that another `count` bytes of a file have arrived. */
    every: (count: number, then: () => unknown) => ([lookEvery, look] = [count, then]),
    firstRead: () => new Promise<void>((resolve) => (onFirstRead = resolve)),
    nextFailure: () => new Promise<void>((resolve) => (onFailure = resolve)),
  }
}
