import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { createHandler } from '../../../src/http/index.js'
import { serve } from '../../../src/http/mounts/node.js'
import { StorageUse } from '../../../src/http/routing/storage-use.js'
import { durableStores } from '../durable-stores.js'
import { pollJob, separated, type Service, serviceOfTest } from '../harness.js'
import { stemsId } from '../light-workflows.js'

interface Ticket {
  uploadUrl: string
  downloadUrl: string
}

async function newTicket(service: Service, key?: string): Promise<Ticket> {
  return (await (await service.api('/upload', { key })).json()) as Ticket
}

/** Begins a PUT and leaves it unfinished. */
async function beginUpload(url: string): Promise<{ answer: Promise<string>; finish(): void }> {
  const { hostname, port, host, pathname, search } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.on('data', (data) => (received += data.toString()))
  socket.on('error', () => {})
  const answer = new Promise<string>((resolve) => socket.on('close', () => resolve(received)))
  const head = [`PUT ${pathname}${search} HTTP/1.1`, `Host: ${host}`, 'Content-Length: 8', 'Connection: close', '', '']
  await new Promise<void>((resolve) => socket.write(`${head.join('\r\n')}1234`, () => resolve()))
  return { answer, finish: () => void socket.write('5678') }
}

const put = (url: string, body: string | Buffer) => fetch(url, { method: 'PUT', body })
const turn = () => new Promise((resolve) => setTimeout(resolve, 0))
const statusOf = (answer: string) => Number(answer.split(' ')[1])

describe('uploads under way', () => {
  test('with the same ticket are refused, except for one, before any of their bytes are stored', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'stemwork-http-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const service = await serviceOfTest({ blobs: fsBlobs({ directory }) })
    const { uploadUrl, downloadUrl } = await newTicket(service)
    const files = () =>
      readdirSync(directory, { recursive: true, withFileTypes: true }).filter(
        (one) => one.isFile() && one.name !== 'deployment',
      )
    // The engine's own file is first written under a temporary name, and would be counted there.
    await expect.poll(() => existsSync(join(directory, 'deployment'))).toBe(true)
    const first = await beginUpload(uploadUrl)
    await expect.poll(() => files().length).toBe(1)
    const others = await Promise.all(Array.from({ length: 30 }, () => beginUpload(uploadUrl)))
    for (const other of others) other.finish()
    const answers = await Promise.all(others.map(({ answer }) => answer))
    expect(new Set(answers.map(statusOf))).toEqual(new Set([429]))
    expect(files()).toHaveLength(1)
    first.finish()
    expect(statusOf(await first.answer)).toBe(200)
    expect(await (await fetch(downloadUrl)).text()).toBe('12345678')
  })

  test('are limited for each application, and those of others go on', async () => {
    const service = await serviceOfTest({ http: { limits: { uploadsInFlight: 2 } } })
    const tickets = await Promise.all(Array.from({ length: 3 }, () => newTicket(service)))
    const held = [await beginUpload(tickets[0]!.uploadUrl), await beginUpload(tickets[1]!.uploadUrl)]
    await expect.poll(async () => (await put((await newTicket(service)).uploadUrl, 'probe')).status).toBe(429)
    const refused = await put(tickets[2]!.uploadUrl, 'third')
    expect([refused.status, refused.headers.has('retry-after'), await refused.json()]).toEqual([
      429,
      true,
      expect.objectContaining({ code: 'RATE_LIMITED', message: expect.stringContaining('2 uploads') }),
    ])
    const { key } = await service.addApplication('Other')
    expect((await put((await newTicket(service, key)).uploadUrl, 'other')).status).toBe(200)
    for (const one of held) one.finish()
    expect((await Promise.all(held.map(({ answer }) => answer))).map(statusOf)).toEqual([200, 200])
    expect((await put(tickets[2]!.uploadUrl, 'third')).status).toBe(200)
  })
})

test('an upload asks the store three things at once and writes once, and a download opens one file', async () => {
  const inner = memoryBlobs()
  const calls: string[] = []
  const telling =
    <Name extends 'put' | 'get' | 'stat' | 'delete'>(name: Name) =>
    (...given: Parameters<(typeof inner)[Name]>) => {
      calls.push(name)
      return (inner[name] as (...given: unknown[]) => ReturnType<(typeof inner)[Name]>)(...given)
    }
  const blobs = { ...inner, put: telling('put'), get: telling('get'), stat: telling('stat'), delete: telling('delete') }
  const service = await serviceOfTest({ blobs })
  const { uploadUrl, downloadUrl } = await newTicket(service)
  calls.length = 0
  expect((await put(uploadUrl, 'song')).status).toBe(200)
  expect(await (await fetch(downloadUrl)).text()).toBe('song')
  expect(calls).toEqual(['stat', 'stat', 'stat', 'put', 'get'])
})

describe('a used ticket', () => {
  test('takes no second file when its job has ended and was deleted', async () => {
    const service = await serviceOfTest()
    const { uploadUrl, downloadUrl } = await newTicket(service)
    expect((await put(uploadUrl, 'song')).status).toBe(200)
    const { id, status } = await separated(service, downloadUrl)
    expect(status).toBe('SUCCEEDED')
    expect((await put(uploadUrl, 'second')).status).toBe(409)
    await service.api(`/job/${id}`, { method: 'DELETE' })
    expect((await fetch(downloadUrl)).status).toBe(404)
    expect((await put(uploadUrl, 'second')).status).toBe(409)
    // Nor does the sweep restore it while the ticket is valid.
    await service.engine.sweep({ files: true })
    expect((await put(uploadUrl, 'second')).status).toBe(409)
    expect((await fetch(downloadUrl)).status).toBe(404)
  })

  test('is not remembered for longer than unused uploads are kept, so no ticket lives longer', async () => {
    const service = await serviceOfTest({ engine: { retention: { unusedUploadsMs: 90_000 } } })
    const { uploadUrl } = await newTicket(service)
    const left = Number(new URL(uploadUrl).searchParams.get('expires')) - Date.now() / 1000
    expect(left).toBeLessThanOrEqual(90)
  })
})

for (const [name, open, missing] of durableStores) {
  describe.skipIf(missing !== undefined)(
    `the storage of an application on ${name}${missing ? ` (${missing})` : ''}`,
    () => {
      async function startFull(storedBytes: number): Promise<Service & { stores: Awaited<ReturnType<typeof open>> }> {
        const stores = await open()
        onTestFinished(() => stores.close())
        const service = await serviceOfTest({ stores, http: { limits: { storedBytes } } })
        return { ...service, stores }
      }

      const stems = async (service: Service, inputUrl: string) =>
        service.submit({ workflow: stemsId, params: { inputUrl } })

      /** The status with which a process without a recent count answers a request for a ticket. */
      async function ticketOfAnother({ engine, app }: Service, storedBytes: number): Promise<number> {
        const server = await serve(createHandler(engine, { basePath: '/v1', limits: { storedBytes } }), { port: 0 })
        onTestFinished(() => server.close({ timeoutMs: 0 }))
        return (await fetch(`${server.origin}/v1/upload`, { headers: { authorization: app.key } })).status
      }

      test('accepts uploads up to its limit, to the byte, and says what to do then', async () => {
        const service = await startFull(1000)
        const tickets = await Promise.all(Array.from({ length: 4 }, () => newTicket(service)))
        expect((await put(tickets[0]!.uploadUrl, Buffer.alloc(600))).status).toBe(200)
        const refused = await put(tickets[1]!.uploadUrl, Buffer.alloc(401))
        expect([refused.status, await refused.json()]).toEqual([
          429,
          expect.objectContaining({ code: 'STORAGE_FULL', message: expect.stringContaining('Delete jobs') }),
        ])
        // Clients that ignore this answer get the reason from the job.
        expect(await (await stems(service, tickets[1]!.downloadUrl)).json()).toMatchObject({ reason: 'storage_full' })
        const half = new ReadableStream({
          start(controller) {
            controller.enqueue(Buffer.alloc(300))
            controller.enqueue(Buffer.alloc(300))
            controller.close()
          },
        })
        const chunked = { method: 'PUT', body: half, duplex: 'half' } as RequestInit
        expect((await fetch(tickets[2]!.uploadUrl, chunked)).status).toBe(429)
        expect((await put(tickets[3]!.uploadUrl, Buffer.alloc(400))).status).toBe(200)
        expect((await service.api('/upload')).status).toBe(429)
        const { key } = await service.addApplication('Other')
        expect((await service.api('/upload', { key })).status).toBe(200)
      })

      test('counts results, and has room again when their job is deleted', async () => {
        const service = await startFull(6000)
        const { id } = (await (await stems(service, await service.uploaded(Buffer.alloc(2500)))).json()) as {
          id: string
        }
        expect((await pollJob(service, id)).status).toBe('SUCCEEDED')
        expect(await service.engine.resultBytes(service.app.id)).toBe(5000)
        // A process without a recent count.
        const handler = createHandler(service.engine, { basePath: '/v1', limits: { storedBytes: 6000 } })
        const server = await serve(handler, { port: 0 })
        onTestFinished(() => server.close({ timeoutMs: 0 }))
        const refused = await fetch(`${server.origin}/v1/job`, {
          method: 'POST',
          body: JSON.stringify({ workflow: 'service/held', params: {} }),
          headers: { authorization: service.app.key, 'content-type': 'application/json' },
        })
        expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([429, 'STORAGE_FULL'])
        await service.api(`/job/${id}`, { method: 'DELETE' })
        expect(await service.engine.resultBytes(service.app.id)).toBe(0)
        expect((await service.api('/upload')).status).toBe(200)
      })

      test('counts what clients send with jobs, and has room again when these are deleted', async () => {
        const service = await startFull(22_000)
        const metadata = Object.fromEntries(Array.from({ length: 45 }, (_, n) => [`key-${n}`, 'x'.repeat(450)]))
        const { id, status } = await separated(service, Buffer.alloc(500), { metadata })
        expect(status).toBe('SUCCEEDED')
        expect(await ticketOfAnother(service, 22_000)).toBe(429)
        await service.api(`/job/${id}`, { method: 'DELETE' })
        expect(await ticketOfAnother(service, 22_000)).toBe(200)
      })

      test('counts batches and failing webhook receivers, which outlive their jobs', async () => {
        const { engine, app, api } = await startFull(30_000)
        const webhook = { url: `https://example.com/${'x'.repeat(1000)}` }
        const jobs = [{ workflow: 'service/held', params: {} }]
        for (let n = 0; n < 30; n++) await engine.submitBatch({ app: app.id, name: `${n}`, webhook, jobs })
        await engine.bulk('delete', { app: app.id })
        expect(await engine.documentBytes(app.id)).toBeGreaterThan(30_000)
        expect(await engine.documentBytes(`${app.id}/other`)).toBe(0)
        expect((await api('/upload')).status).toBe(429)
      })

      test('counts what is left of used tickets as the disk does', async () => {
        const service = await startFull(20_000)
        for (let n = 0; n < 5; n++) {
          expect(await ticketOfAnother(service, 20_000)).toBe(200)
          const { id } = await separated(service, Buffer.alloc(10))
          await service.api(`/job/${id}`, { method: 'DELETE' })
        }
        expect(await ticketOfAnother(service, 20_000)).toBe(429)
      })

      test('is not exceeded by uploads in parallel', async () => {
        const service = await startFull(1000)
        const tickets = await Promise.all(Array.from({ length: 15 }, () => newTicket(service)))
        const answers = await Promise.all(tickets.map(({ uploadUrl }) => put(uploadUrl, Buffer.alloc(300))))
        expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0)
        let bytes = 0
        for await (const entry of service.engine.blobs.list(`uploads/${service.app.id}/`))
          if (!/\.(used|refused)$/.test(entry.key)) bytes += entry.bytes
        expect(bytes).toBeLessThanOrEqual(1000)
      })
    },
  )
}

test('stored files are not counted again for each ticket, since counting many files takes long', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const blobs = memoryBlobs()
  let looks = 0
  const service = await serviceOfTest({
    blobs: { ...blobs, list: (prefix) => (looks++, blobs.list(prefix)) },
    worker: false,
  })
  for (let index = 0; index < 10; index++) await put((await newTicket(service)).uploadUrl, 'song')
  vi.advanceTimersByTime(10_000)
  await newTicket(service)
  expect(looks).toBe(1)
  vi.advanceTimersByTime(1000)
  await Promise.all(Array.from({ length: 10 }, () => newTicket(service)))
  expect(looks).toBe(2)
})

test('no request waits for a count if the last one found plenty of room', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let stored = 10
  let looks = 0
  let finish = () => {}
  const engine = {
    blobs: memoryBlobs(),
    recordBytes: async () => 0,
    documentBytes: async () => 0,
    async resultBytes() {
      const found = stored
      if (looks++ > 0) await new Promise<void>((resolve) => (finish = resolve))
      return found
    },
  }
  const use = new StorageUse(engine, { storedBytes: 100, uploadsInFlight: 1 })
  await use.refuseFull('app')
  vi.advanceTimersByTime(11_000)
  stored = 60
  // The count has begun, but has not ended.
  await use.refuseFull('app')
  expect(looks).toBe(2)
  finish()
  await turn()
  // More than half was used at the last count, so the next count is awaited.
  vi.advanceTimersByTime(5000)
  stored = 100
  let answer: unknown = 'none'
  void use.refuseFull('app').catch((error: unknown) => (answer = error))
  await turn()
  expect([looks, answer]).toEqual([3, 'none'])
  finish()
  await turn()
  expect(answer).toMatchObject({ code: 'STORAGE_FULL' })
})

test('uploads straight to the blob store count, too', async () => {
  const blobs = {
    ...memoryBlobs(),
    signPut: async () => 'https://bucket.example/put',
    signGet: async () => 'https://bucket.example/get',
  }
  const service = await serviceOfTest({ blobs, http: { directStorage: true, limits: { storedBytes: 10 } } })
  expect((await service.api('/upload')).status).toBe(200)
  await blobs.put(`uploads/${service.app.id}/direct`, Readable.from([Buffer.from('more than ten bytes')]))
  // After the next count of the store.
  await expect.poll(async () => (await service.api('/upload')).status, { timeout: 15_000, interval: 200 }).toBe(429)
})

test('a job store that fails while the uploads are being counted fails the request, not the process', async () => {
  let finishListing = () => {}
  const listing = new Promise<void>((resolve) => (finishListing = resolve))
  const use = new StorageUse(
    {
      blobs: {
        ...memoryBlobs(),
        async *list() {
          await listing
          yield* []
        },
      },
      recordBytes: async () => 0,
      documentBytes: async () => 0,
      resultBytes: () => Promise.reject(new Error('the job store is away')),
    },
    { storedBytes: 1, uploadsInFlight: 1 },
  )
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  try {
    const refused = use.refuseFull('app').catch((error: unknown) => error)
    // Node.js reports an unhandled rejection after the turn in which it occurred.
    await turn()
    await turn()
    finishListing()
    expect(await refused).toMatchObject({ message: 'the job store is away' })
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
})
