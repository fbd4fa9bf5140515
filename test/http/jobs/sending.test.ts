import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { LoopTurns } from '../../../src/http/routing/loop-turns.js'
import { paced } from '../../../src/http/routing/paced-stream.js'
import { type Service, serviceOfTest } from '../harness.js'
import { stemsId } from '../light-workflows.js'

async function resultOf(
  service: Service,
  key: string,
  bytes: Buffer = Buffer.alloc(1000, 'sound'),
): Promise<{ id: string; link: string }> {
  const ticket = (await (await service.api('/upload', { key })).json()) as { uploadUrl: string; downloadUrl: string }
  await fetch(ticket.uploadUrl, { method: 'PUT', body: bytes })
  const id = await service.created({ workflow: stemsId, params: { inputUrl: ticket.downloadUrl } }, { key })
  for (;;) {
    const job = (await (await service.api(`/job/${id}`, { key })).json()) as {
      status: string
      result: { vocals: string } | null
    }
    if (job.result) return { id, link: job.result.vocals }
    await delay(20)
  }
}

/** Begins a download, and reads only its head. */
async function begin(link: string, headers = ''): Promise<{ status: string; socket: Socket; head: Buffer }> {
  const { hostname, port, host, pathname, search } = new URL(link)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${headers}\r\n`)
  await once(socket, 'readable')
  const head = socket.read(100) as Buffer
  const [, status = ''] = /^HTTP\/1\.1 (\d+)/.exec(head.toString()) ?? []
  return { status, socket, head }
}

test('downloads by link have slots; an application without one gets one of the application with the most', async () => {
  const service = await serviceOfTest({ http: { limits: { downloads: 3, allDownloads: 4 } } })
  const other = await service.addApplication('Other')
  const third = await service.addApplication('Third')
  const mine = await resultOf(service, service.app.key, Buffer.alloc(20_000_000))
  const theirs = await resultOf(service, other.key, Buffer.alloc(20_000_000))
  const last = await resultOf(service, third.key)
  const begun = [await begin(mine.link), await begin(mine.link), await begin(mine.link)]
  expect(begun.map(({ status }) => status)).toEqual(Array(3).fill('200'))
  expect((await begin(mine.link)).status).toBe('429')
  const archive = (await (await service.api(`/archive?job=${mine.id}`)).json()) as { url: string }
  expect((await begin(archive.url)).status).toBe('429')
  expect((await fetch(mine.link, { method: 'HEAD' })).status).toBe(200)
  expect((await begin(theirs.link)).status).toBe('200')

  const cut = once(begun[2]!.socket.resume(), 'close')
  expect((await fetch(last.link)).status).toBe(200)
  await cut
  // A cancelled download frees its slot.
  begun[0]!.socket.destroy()
  await expect.poll(async () => (await fetch(mine.link, { headers: { range: 'bytes=0-9' } })).status).toBe(206)
})

/** Creates fifty jobs, whose list is larger than socket buffers hold while nobody reads. */
async function withLargeLists(idleMs: number) {
  const rateLimits = { create: false, other: false } as const
  const limits = { paramsBytes: 200_000, listBytes: 50_000_000, idleMs }
  const service = await serviceOfTest({ worker: false, http: { rateLimits, limits } })
  const create = (key: string) => service.submit({ params: { filler: 'x'.repeat(180_000) } }, { key })
  for (let n = 0; n < 50; n++) expect((await create(service.app.key)).status).toBe(200)
  const list = () => begin(`${service.base}/job`, `Authorization: ${service.app.key}\r\n`)
  return { service, create, list }
}

test('an application may have a few unread lists; it may request anything else, and others anything', async () => {
  const { service, create, list } = await withLargeLists(30_000)
  const other = await service.addApplication('Other')
  await create(other.key)
  const begun = []
  for (let n = 0; n < 16; n++) begun.push(await list())
  expect(begun.map(({ status }) => status)).toEqual(Array(16).fill('200'))
  expect((await list()).status).toBe('429')
  expect((await service.api('/application')).status).toBe(200)
  expect(await (await service.api('/job', { key: other.key })).json()).toHaveLength(1)
  begun[0]!.socket.destroy()
  await expect.poll(async () => (await list()).status).toBe('200')
})

test('a list that is not read is ended', async () => {
  const { list } = await withLargeLists(200)
  const { status, socket } = await list()
  expect(status).toBe('200')
  await delay(1000)
  let bytes = 0
  socket.on('data', (chunk) => (bytes += chunk.byteLength))
  await once(socket, 'close')
  expect(bytes).toBeLessThan(50 * 180_000)
})

test('files read with the memory of one chunk arrive intact, however slowly, alone and in an archive', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-sending-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const service = await serviceOfTest({ blobs: fsBlobs({ directory }) })
  const bytes = randomBytes(8_000_000)
  const { id, link } = await resultOf(service, service.app.key, bytes)
  const archive = (await (await service.api(`/archive?job=${id}`)).json()) as { url: string }
  for (const url of [link, archive.url]) {
    // The process holds what does not fit into the socket buffers.
    const { socket, head } = await begin(url)
    await delay(200)
    const slow = [head]
    for await (const chunk of socket) {
      slow.push(chunk as Buffer)
      if (slow.length % 50 === 0) await delay(5)
    }
    const received = Buffer.concat(slow)
    const body = received.subarray(received.indexOf('\r\n\r\n') + 4)
    // A web response keeps the bytes that it was given.
    const web = Buffer.from(await (await service.handler(new Request(url))).arrayBuffer())
    expect(body.equals(web)).toBe(true)
    if (url === link) expect(body.equals(bytes)).toBe(true)
  }
})

test('requests by link are counted for the application of the link', async () => {
  const service = await serviceOfTest({ http: { rateLimits: { link: { requests: 3, perSeconds: 60 } } } })
  const { link } = await resultOf(service, service.app.key)
  const statuses: number[] = []
  for (let n = 0; n < 4; n++) statuses.push((await fetch(link, { method: 'HEAD' })).status)
  expect(statuses).toEqual([200, 200, 200, 429])
  const other = await resultOf(service, (await service.addApplication('Other')).key)
  expect((await fetch(other.link, { method: 'HEAD' })).status).toBe(200)
})

test('what is sent takes turns by application, some chunks in each pass of the event loop', async () => {
  const turns = new LoopTurns()
  let chunks = 0
  let most = 0
  async function* body() {
    for (;;) yield new Uint8Array(1)
  }
  let ended = false
  const download = async () => {
    for await (const _ of paced(turns, 'large', body())) {
      chunks++
      if (ended) return
    }
  }
  const downloads = Array.from({ length: 50 }, download)
  for (let pass = 0; pass < 100; pass++) {
    const before = chunks
    await new Promise((resolve) => setImmediate(resolve))
    most = Math.max(most, chunks - before)
  }
  expect(chunks).toBeGreaterThan(100)
  expect(most).toBeLessThanOrEqual(4)
  const before = chunks
  await turns.next('small')
  expect(chunks - before).toBeLessThanOrEqual(4)
  ended = true
  await Promise.all(downloads)
})

test('while passes are long, each chunk of a download waits only for the one before it', async () => {
  const turns = new LoopTurns()
  await turns.next('small')
  async function* body() {
    for (let chunk = 0; chunk < 10; chunk++) yield new Uint8Array(1)
  }
  let isOver = false
  const download = async () => {
    for await (const _ of paced(turns, 'large', body()));
    isOver = true
  }
  const downloaded = download()
  let passes = 0
  for (; !isOver; passes++) {
    for (const until = performance.now() + 3; performance.now() < until;);
    await new Promise((resolve) => setImmediate(resolve))
  }
  await downloaded
  expect(passes).toBeLessThan(40)
})

test('a body whose stream was never read is closed with it', async () => {
  let closed = 0
  const body: AsyncIterableIterator<Uint8Array> = {
    [Symbol.asyncIterator]: () => body,
    next: async () => ({ done: false, value: new Uint8Array(1) }),
    return: async () => {
      closed++
      return { done: true, value: undefined }
    },
  }
  await paced(new LoopTurns(), 'app', body).return?.()
  expect(closed).toBe(1)
})
