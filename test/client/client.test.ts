import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ClientError, createClient, type Client } from '../../src/client/client.js'
import { type Service, startService } from '../http/harness.js'
import { cuttingProxy } from '../http/storage/cutting-proxy.js'
import { startFront } from './front.js'

const stems = 'service/stems-vocals-accompaniment'
const mebibyte = 1024 ** 2
const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

let service: Service
let client: Client
beforeAll(async () => {
  service = await startService()
  client = createClient({ baseUrl: service.base, apiKey: service.app.key })
})
afterAll(() => service.close())

async function held(): Promise<string> {
  return (await client.createJob({ workflow: 'service/held', params: {}, name: 'held' })).id
}

/** Held jobs stay at halfway until they are stopped; fetching and publishing take small shares of the whole. */
function isHalfway(progress: number): boolean {
  return progress > 0.4 && progress < 1
}

function brokenAfter(text: string): ReadableStream<Uint8Array> {
  let isSent = false
  return new ReadableStream({
    pull(controller) {
      if (isSent) controller.error(new TypeError('terminated'))
      else controller.enqueue(Buffer.from(text))
      isSent = true
    },
  })
}

async function failure(promise: Promise<unknown>): Promise<ClientError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!ClientError.is(error)) throw new Error(`expected a ClientError, got ${String(error)}`)
  return error
}

describe('the client', () => {
  test('gives its application and the available workflows', async () => {
    expect(await client.application()).toEqual({ id: service.app.id, name: 'Test application' })
    expect((await client.workflows()).map(({ id }) => id)).toEqual([stems, 'service/held'])
    expect(await client.workflow(stems)).toMatchObject({ id: stems, params: { required: ['inputUrl'] } })
  })

  test.each(['blob', 'bytes', 'stream', 'generator'])(
    'uploads a %s with progress, runs a job and downloads its results',
    async (kind) => {
      const bytes = randomBytes(600_000)
      const source =
        {
          blob: new Blob([bytes]),
          bytes,
          stream: new Blob([bytes]).stream() as ReadableStream<Uint8Array>,
          generator: inPieces(bytes),
        }[kind] ?? bytes
      const uploaded: number[] = []
      const { downloadUrl } = await client.upload(source, { onProgress: (progress) => uploaded.push(progress.bytes) })
      expect(uploaded.length).toBeGreaterThan(1)
      expect(uploaded.at(-1)).toBe(bytes.length)
      expect(uploaded).toEqual([...uploaded].sort((a, b) => a - b))

      const { id } = await client.createJob({ workflow: stems, params: { inputUrl: downloadUrl }, name: 'song.wav' })
      const job = await client.waitForJob(id)
      expect(job).toMatchObject({
        id,
        status: 'SUCCEEDED',
        name: 'song.wav',
        progress: 1,
        details: { model: { name: 'none' } },
      })
      const downloaded: number[] = []
      const file = await client.download(job.result?.vocals ?? '', {
        onProgress: (progress) => downloaded.push(progress.bytes),
      })
      expect(file).toMatchObject({ fileName: 'song - vocals.wav', contentType: 'audio/wav', bytes: bytes.length })
      expect(digest(new Uint8Array(await (await file.blob()).arrayBuffer()))).toBe(digest(bytes))
      expect(downloaded.at(-1)).toBe(bytes.length)
      const part = await client.download(job.result?.vocals ?? '', { range: { start: 10, end: 19 } })
      expect(Buffer.from(await (await part.blob()).arrayBuffer())).toEqual(bytes.subarray(10, 20))
      await client.deleteJob(id)
      expect(await failure(client.getJob(id))).toMatchObject({ code: 'NOT_FOUND', status: 404 })
    },
  )

  test('lists jobs by filters and pages', async () => {
    const batchName = 'pages'
    for (const name of ['a', 'b', 'c'])
      await client.createJob({ workflow: 'service/held', params: {}, name, batchName })
    const first = await client.listJobs({ batchName, size: 2, status: ['QUEUED', 'STARTED'], workflow: 'service/held' })
    expect([first.jobs.map(({ name }) => name), first.total]).toEqual([['c', 'b'], 3])
    const second = await client.listJobs({ batchName, size: 2, cursor: first.next })
    expect([second.jobs.map(({ name }) => name), second.next]).toEqual([['a'], undefined])
    expect((await client.listJobs({ batchName, createdBefore: new Date(0) })).jobs).toEqual([])
    expect(
      (await client.listJobs({ batchName, completedAfter: new Date(0), completedBefore: '2100-01-01' })).jobs,
    ).toEqual([])
    for (const { id } of [...first.jobs, ...second.jobs]) await client.deleteJob(id)
  })

  test.each(['events', 'polling'] as const)('reports the progress of a job by %s until it is canceled', async (by) => {
    const id = await held()
    const seen: string[] = []
    let canceled: Promise<unknown> | undefined
    const ended = client.waitForJob(id, {
      by,
      onProgress({ status, progress }) {
        if (seen.push(status) && isHalfway(progress)) canceled ??= client.cancelJob(id)
      },
    })
    expect(await ended).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
    await canceled
    expect(seen).toContain('STARTED')
    await client.deleteJob(id)
  })

  test('ends a wait when the job is deleted', async () => {
    const id = await held()
    let deleted: Promise<void> | undefined
    const onProgress = ({ progress }: { progress: number }) => {
      if (isHalfway(progress)) deleted ??= client.deleteJob(id)
    }
    expect(await failure(client.waitForJob(id, { onProgress }))).toMatchObject({ code: 'NOT_FOUND', status: 404 })
    await deleted
  })

  test('stops a wait, an upload and a download by their signals, with the reason that was given', async () => {
    const reason = new Error('the user left')
    const id = await held()
    const stop = new AbortController()
    await expect(client.waitForJob(id, { signal: stop.signal, onProgress: () => stop.abort(reason) })).rejects.toBe(
      reason,
    )
    await client.deleteJob(id)

    const endless = new AbortController()
    async function* zeros() {
      for (;;) yield new Uint8Array(1000)
    }
    await expect(
      client.upload(zeros(), {
        signal: endless.signal,
        onProgress: ({ bytes }) => void (bytes > 100_000 && endless.abort(reason)),
      }),
    ).rejects.toBe(reason)
    await expect(client.getJob(id, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })

  test('throws the error of the service, with its code, status and request id', async () => {
    const error = await failure(client.createJob({ workflow: 'service/none', params: {} }))
    expect(error).toMatchObject({ code: 'UNKNOWN_WORKFLOW', status: 422, requestId: expect.stringMatching(/.{10}/) })
    expect(error.message).toContain('service/held')
    expect(
      await failure(createClient({ baseUrl: service.base, apiKey: 'nobody-knows-this-key' }).application()),
    ).toMatchObject({
      code: 'UNAUTHORIZED',
      status: 401,
    })
    expect(await failure(client.download(`${service.base}/storage/results/x/1/vocals.wav`))).toMatchObject({
      code: 'FORBIDDEN',
      status: 403,
    })
    expect(await failure(createClient({ baseUrl: 'http://127.0.0.1:1', retries: 0 }).application())).toMatchObject({
      code: 'NETWORK',
      status: 0,
    })
    const invalid = await failure(client.createJob({ workflow: stems, params: { inputUrl: 'no url' } }))
    expect(invalid.errors).toMatchObject([{ path: expect.stringContaining('inputUrl') }])
  })
})

describe('what a host passes to the client', () => {
  const own = new Error('a defect of the host')
  const fail = () => {
    throw own
  }

  test.each(['events', 'polling'] as const)('may throw while it waits by %s, which ends the wait', async (by) => {
    const id = await held()
    await expect(client.waitForJob(id, { by, onProgress: fail })).rejects.toBe(own)
    await client.deleteJob(id)
  })

  test('may throw while it follows jobs, which ends the following', async () => {
    let id: Promise<string> | undefined
    await expect(client.followJobs({ onJob: fail, onState: () => void (id ??= held()) })).rejects.toBe(own)
    await client.deleteJob((await id) ?? '')
  })

  test('may throw while a file is sent or read, which is not reported as a fault of the network', async () => {
    await expect(client.upload(randomBytes(100_000), { onProgress: fail })).rejects.toBe(own)
    await expect(client.upload(Buffer.alloc(9 * 1024 ** 2), { onProgress: fail })).rejects.toBe(own)
    async function* broken() {
      yield new Uint8Array(1000)
      fail()
    }
    await expect(client.upload(broken())).rejects.toBe(own)
    const { downloadUrl } = await client.upload(randomBytes(1000))
    const { id } = await client.createJob({ workflow: stems, params: { inputUrl: downloadUrl } })
    const { result } = await client.waitForJob(id)
    const download = await client.download(result?.vocals ?? '', { onProgress: fail })
    await expect(download.blob()).rejects.toBe(own)
    await client.deleteJob(id)
  })

  test.each([
    ['a path', 'song.mp3', /not String\. For a path, pass await fs\.openAsBlob/],
    ['an ArrayBuffer', new ArrayBuffer(8), /not ArrayBuffer\. .* new Uint8Array/],
    ['nothing', undefined, /not Undefined\./],
    ['a stream of text', Readable.from(['text']), /not String\. Read the stream without an encoding/],
  ])('may not be %s as a file', async (_what, source: unknown, message) => {
    await expect(client.upload(source as Uint8Array)).rejects.toThrow(message)
  })

  test.each(['', '.', '..'])('may be "%s" as the id of a job, of which there is none', async (id) => {
    for (const request of [
      client.getJob(id),
      client.waitForJob(id),
      client.waitForJob(id, { by: 'polling' }),
      client.cancelJob(id),
      client.growing(id, 'vocals'),
      client.deleteJob(id),
    ])
      expect(await failure(request)).toMatchObject({ code: 'NOT_FOUND', status: 404 })
  })

  test('may be a time that is none, which the service refuses', async () => {
    const error = await failure(client.listJobs({ createdAfter: 'yesterday' }))
    expect(error.errors).toMatchObject([{ path: 'createdAfter' }])
  })

  test.each(['..', '.', ''])(
    'may not lead to another address, as "%s" does: the job is not deleted for a link',
    async (dots) => {
      const id = await held()
      const asked = [
        () => client.revokeJobLink(id, dots),
        () => client.revokeKey(dots),
        () => client.sendEvent(id, dots),
        () => client.peaks(id, dots),
        () => client.growing(id, dots),
        () => client.growingPeaks(id, dots),
        () => client.workflow(`service/${dots}`),
        () => client.workflow(`${dots}/application`),
      ]
      for (const ask of asked) expect(await failure(ask())).toMatchObject({ code: 'NOT_FOUND', status: 404 })
      expect(await client.getJob(id)).toMatchObject({ id })
      await client.cancelJob(id)
    },
  )

  test.each(['?a=b', '#a'])('may not be a base address with %s, behind which no path can be put', (end) => {
    expect(() => createClient({ baseUrl: service.base + end })).toThrow(/createClient needs baseUrl/)
  })

  test('may be days that are undefined', async () => {
    const { from, to }: { from?: string; to?: string } = {}
    expect(await client.usage({ from, to })).toEqual(await client.usage())
  })
})

describe('a download', () => {
  test.each([
    ['filename="vocals.wav"', 'vocals.wav'],
    ['filename="a.wav"; filename*=UTF-8\'\'%C3%A4.wav', 'ä.wav'],
    ['filename="a.wav"; filename*=UTF-8\'\'%2e%2e', 'a.wav'],
    ["filename*=UTF-8''a%00.wav", 'link.wav'],
    ['filename=".."', 'link.wav'],
    ['filename="."', 'link.wav'],
    ['filename="../a.wav"', 'link.wav'],
    ['', 'link.wav'],
  ])('with the header %j has a name that stays in its folder: %j', async (header, name) => {
    const headers = { 'content-disposition': `attachment; ${header}` }
    const named = createClient({ baseUrl: service.base, fetch: async () => new Response('x', { headers }) })
    const { fileName } = await named.download(`${service.base}/link.wav?signature=a/b`)
    expect(fileName).toBe(name)
    // Like a `fetch` of the host, whose response has no address.
    expect((await named.growing('id', 'vocals')).fileName).toBe(name === 'link.wav' ? 'download' : name)
  })

  test('goes on where its connection breaks, also of a part of the file', async () => {
    const bytes = randomBytes(3 * mebibyte)
    const { downloadUrl } = await client.upload(bytes)
    // No single connection can carry the whole file.
    const network = await cuttingProxy(Number(new URL(service.base).port), mebibyte)
    onTestFinished(() => network.close())
    const link = downloadUrl.replace(new URL(service.base).origin, network.origin)
    const progress: number[] = []
    const whole = await client.download(link, { onProgress: ({ bytes: done }) => progress.push(done) })
    expect(digest(new Uint8Array(await (await whole.blob()).arrayBuffer()))).toBe(digest(bytes))
    expect(network.cuts).toBeGreaterThanOrEqual(2)
    expect(progress).toEqual(progress.toSorted((one, other) => one - other))
    expect(progress.at(-1)).toBe(bytes.length)
    const part = await client.download(link, { range: { start: 1000, end: 2 * mebibyte } })
    expect(digest(new Uint8Array(await (await part.blob()).arrayBuffer()))).toBe(
      digest(bytes.subarray(1000, 2 * mebibyte + 1)),
    )
  })

  test.each([
    ['of a file that has changed meanwhile', { etag: '"b"' }, {}],
    ['of a server that ignores ranges', { 'content-range': '' }, {}],
    ['that a proxy compressed', {}, { 'content-encoding': 'gzip' }],
    ['whose tag promises no equal bytes', {}, { etag: 'W/"a"' }],
  ])('%s is not continued with other bytes', async (_, rest, first) => {
    const asked: unknown[] = []
    const server = async (_url: unknown, request?: RequestInit) => {
      const { range } = (request?.headers ?? {}) as { range?: string }
      asked.push(range)
      const body = asked.length === 1 ? brokenAfter('abc') : 'xyz'
      const ofPart = asked.length === 1 ? first : { 'content-range': 'bytes 3-5/6', ...rest }
      return new Response(body, { headers: { etag: '"a"', 'content-length': '6', ...ofPart } })
    }
    const download = await createClient({ baseUrl: service.base, fetch: server }).download(`${service.base}/x.wav`)
    await expect(download.blob()).rejects.toMatchObject({ code: 'NETWORK' })
    expect(asked).toEqual(Object.keys(first).length > 0 ? [undefined] : [undefined, 'bytes=3-'])
  })

  test.each(['not a link', undefined])('of %j is refused at once, with what was expected', async (link) => {
    await expect(client.download(link as string)).rejects.toThrow(
      /^download\(\) needs a link from a job's result, not .*\.$/,
    )
  })
})

describe('behind a bad network the client', () => {
  test('names the new address where a request would lose its method, body or key', async () => {
    const elsewhere = { headers: { location: `${service.base}/job` } }
    const front = await startFront(service.server.origin, [
      { status: 301, path: /\/job$/, ...elsewhere },
      { status: 308, path: /\/job$/, ...elsewhere },
    ])
    const moved = createClient({ baseUrl: front.base, apiKey: service.app.key })
    const message = expect.stringContaining(`redirects to ${service.base}/job`)
    const created = moved.createJob({ workflow: 'service/held', params: {} })
    expect(await failure(created)).toMatchObject({ code: 'BAD_ANSWER', status: 301, message })
    expect(await failure(moved.listJobs())).toMatchObject({ code: 'BAD_ANSWER', status: 401, message })
  })

  test.each(['null', '"OK"', '{}', ''])('does not take %j for an answer of the service', async (body) => {
    const answer = { status: 200, headers: { 'content-type': 'application/json' }, body }
    const front = await startFront(service.server.origin, [answer, answer])
    const misled = createClient({ baseUrl: front.base, apiKey: service.app.key })
    const created = misled.createJob({ workflow: 'service/held', params: {} })
    expect(await failure(created)).toMatchObject({ code: 'BAD_ANSWER', status: 200 })
    expect(await failure(misled.waitForJob('id', { by: 'polling' }))).toMatchObject({ code: 'BAD_ANSWER' })
  })

  test('does not read an endless answer to its end', async () => {
    const zeros = new Uint8Array(2 ** 20).fill(48)
    let sent = 0
    const body = () => new ReadableStream({ pull: (stream) => stream.enqueue((sent++, zeros)) })
    for (const status of [200, 404]) {
      const flooded = createClient({ baseUrl: service.base, fetch: async () => new Response(body(), { status }) })
      expect(await failure(flooded.application())).toMatchObject({ code: 'BAD_ANSWER', status })
    }
    expect(sent).toBeLessThan(150)
  })

  test('waits as long as Retry-After says and then tries again', async () => {
    const front = await startFront(service.server.origin, [
      { status: 429, headers: { 'retry-after': '1' } },
      { status: 503 },
    ])
    const wait = globalThis.setTimeout
    /** Number of requests before the end of each pause of 1 to 1.5 seconds, which is skipped here. */
    const requestsAtEnd: number[] = []
    const shortened = (then: (...values: unknown[]) => void, ms?: number, ...values: unknown[]) => {
      if (ms === undefined || ms < 1000 || ms >= 1500) return wait(then, ms, ...values)
      return wait(() => (requestsAtEnd.push(front.seen.length), then(...values)), 0)
    }
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(shortened as typeof setTimeout)
    try {
      const { id } = await createClient({ baseUrl: front.base, apiKey: service.app.key }).application()
      expect(id).toBe(service.app.id)
    } finally {
      timers.mockRestore()
    }
    expect(front.seen).toHaveLength(3)
    expect(requestsAtEnd).toEqual([1])
  })

  test('closes the new connection of a download that is canceled while it continues', async () => {
    const part = new Uint8Array(4)
    let pulls = 0
    const broken = new ReadableStream({
      pull: (stream) => (pulls++ === 0 ? stream.enqueue(part) : stream.error(new TypeError('broken'))),
    })
    const rest = { isCanceled: false, open: () => {} }
    const body = new ReadableStream({
      pull: (stream) => stream.enqueue(part),
      cancel: () => void (rest.isCanceled = true),
    })
    const etag = '"file"'
    let requests = 0
    const cut = createClient({
      baseUrl: service.base,
      async fetch() {
        if (++requests === 1) return new Response(broken, { headers: { etag, 'content-length': '12' } })
        await new Promise<void>((resolve) => (rest.open = resolve))
        return new Response(body, { status: 206, headers: { etag, 'content-range': 'bytes 4-11/12' } })
      },
    })
    const reader = (await cut.download(`${service.base}/file`)).stream.getReader()
    await reader.read()
    const more = reader.read()
    await expect.poll(() => requests).toBe(2)
    await reader.cancel()
    rest.open()
    await expect.poll(() => rest.isCanceled).toBe(true)
    expect(await more).toEqual({ done: true, value: undefined })
  })

  test('gives up after the allowed number of tries', async () => {
    const front = await startFront(
      service.server.origin,
      Array.from({ length: 9 }, () => ({ status: 429, headers: { 'retry-after': '0' } })),
    )
    const impatient = createClient({ baseUrl: front.base, apiKey: service.app.key, retries: 1 })
    expect(await failure(impatient.application())).toMatchObject({ code: 'HTTP_429', status: 429, retryAfterMs: 0 })
    expect(front.seen).toHaveLength(2)
  })

  test('sends a file again that was refused for now, but not a stream, of which nothing is left', async () => {
    const busy = () => ({ status: 429, headers: { 'retry-after': '0' }, path: /\/storage\/uploads\// })
    const front = await startFront(service.server.origin, [busy(), busy()])
    const behind = createClient({ baseUrl: front.base, apiKey: service.app.key })
    const { downloadUrl } = await behind.upload(Buffer.from('song'))
    expect(await (await fetch(downloadUrl)).text()).toBe('song')
    const stopped = await startFront(service.server.origin, [busy()])
    const streaming = createClient({ baseUrl: stopped.base, apiKey: service.app.key })
    expect(await failure(streaming.upload(new Blob(['song']).stream()))).toMatchObject({ status: 429 })
  })

  test.each([['request'], ['before the answer'], ['answer'], ['before the answer', 'request']] as const)(
    'sends a file again if the connection breaks: %s %s',
    async (...broken) => {
      const path = /\/storage\/uploads\//
      const front = await startFront(
        service.server.origin,
        broken.map((breaks) => ({ breaks, path })),
      )
      const behind = createClient({ baseUrl: front.base, apiKey: service.app.key })
      // More than a socket buffers.
      const bytes = Buffer.alloc(1_000_000, 'song')
      const { downloadUrl } = await behind.upload(bytes)
      expect(bytes.equals(Buffer.from(await (await fetch(downloadUrl)).arrayBuffer()))).toBe(true)
      expect(front.seen.filter((seen) => path.test(seen)).length).toBeGreaterThan(broken.length)
    },
  )

  test('does not take a file for stored that the service still expects from a broken connection', async () => {
    const path = /\/storage\/uploads\//
    const front = await startFront(service.server.origin, [{ breaks: 'request, unnoticed by the service', path }])
    const wait = globalThis.setTimeout
    // The pause that the service asks for, in which it notices here.
    const shortened = (then: (...values: unknown[]) => void, ms?: number, ...values: unknown[]) => {
      if (ms === undefined || ms < 10_000 || ms >= 10_500) return wait(then, ms, ...values)
      front.dropRequests()
      return wait(then, 10, ...values)
    }
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(shortened as typeof setTimeout)
    const bytes = Buffer.alloc(1_000_000, 'song')
    try {
      const behind = createClient({ baseUrl: front.base, apiKey: service.app.key, retries: 1000 })
      const { downloadUrl } = await behind.upload(bytes)
      expect(bytes.equals(Buffer.from(await (await fetch(downloadUrl)).arrayBuffer()))).toBe(true)
    } finally {
      timers.mockRestore()
    }
    expect(front.seen.filter((seen) => path.test(seen)).length).toBeGreaterThan(2)
  })

  test('explains the answers of servers that are not the service, or refuse a file, or cannot reach it', async () => {
    const front = await startFront(service.server.origin, [
      { status: 413, path: /\/storage\/uploads\// },
      { status: 504, path: /\/application$/ },
      { status: 404, path: /\/job$/ },
    ])
    const behind = createClient({ baseUrl: front.base, apiKey: service.app.key, retries: 0 })
    expect(await failure(behind.upload(Buffer.from('song')))).toMatchObject({
      code: 'HTTP_413',
      message: expect.stringMatching(
        /^A proxy .* refuses requests of this size \(status 413\)\. .*client_max_body_size/,
      ),
    })
    expect(await failure(behind.application())).toMatchObject({
      code: 'HTTP_504',
      message: expect.stringMatching(/^A proxy .* got no answer from it \(status 504\)/),
    })
    expect(await failure(behind.listJobs())).toMatchObject({
      code: 'HTTP_404',
      message: expect.stringMatching(/^There is no such service .* \(status 404\)\. Check baseUrl: .*\/v1\.$/),
    })
  })

  test('creates only one job if the connection breaks after the service has received the request', async () => {
    const front = await startFront(service.server.origin, [{ breaks: 'before the answer' }])
    const batchName = 'broken connection'
    const { id } = await createClient({ baseUrl: front.base, apiKey: service.app.key }).createJob({
      workflow: 'service/held',
      params: {},
      batchName,
    })
    expect((await client.listJobs({ batchName })).jobs.map((job) => job.id)).toEqual([id])
    await client.deleteJob(id)
  })

  test('asks again if the connection breaks within an answer', async () => {
    const front = await startFront(service.server.origin, [{ breaks: 'answer' }, { breaks: 'answer' }])
    const behind = createClient({ baseUrl: front.base, apiKey: service.app.key })
    expect(await behind.application()).toMatchObject({ id: service.app.id })
    expect(front.seen).toHaveLength(3)
  })

  test('does not take a page that an upload is sent on to for the answer of the service', async () => {
    const elsewhere = { headers: { location: `${service.base}/healthz` } }
    const path = /\/storage\/uploads\//
    const front = await startFront(service.server.origin, [
      { status: 303, path, ...elsewhere },
      { status: 307, path, ...elsewhere },
    ])
    const behind = createClient({ baseUrl: front.base, apiKey: service.app.key, retries: 0 })
    for (const status of [303, 307])
      expect(await failure(behind.upload(Buffer.from('song')))).toMatchObject({ code: 'BAD_ANSWER', status })
  })

  test('does not keep a stream that it has sent', async () => {
    const server = createServer((request, answer) => {
      const { port } = server.address() as AddressInfo
      request.resume().on('end', () => answer.end(JSON.stringify({ uploadUrl: `http://127.0.0.1:${port}/file` })))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    let kept = Infinity
    const chunks = async function* () {
      collectGarbage()
      const before = process.memoryUsage().arrayBuffers
      for (let sent = 0; sent < 128; sent++) yield Buffer.alloc(mebibyte)
      collectGarbage()
      kept = process.memoryUsage().arrayBuffers - before
    }
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    await createClient({ baseUrl }).upload(chunks())
    expect(kept).toBeLessThan(64 * mebibyte)
  })

  test('waits until the date of Retry-After by the clock of the sender', async () => {
    const date = new Date(Date.now() - 3_600_000)
    const headers = { date: date.toUTCString(), 'retry-after': new Date(date.getTime() + 7000).toUTCString() }
    const front = await startFront(service.server.origin, [{ status: 503, headers }])
    const behind = createClient({ baseUrl: front.base, apiKey: service.app.key, retries: 0 })
    expect(await failure(behind.application())).toMatchObject({ status: 503, retryAfterMs: 7000 })
  })

  test('falls back to polling if event streams do not get through', async () => {
    const broken = { path: /\/events$/, status: 502 }
    const front = await startFront(
      service.server.origin,
      Array.from({ length: 20 }, () => broken),
    )
    const id = await held()
    let canceled: Promise<unknown> | undefined
    const ended = createClient({ baseUrl: front.base, apiKey: service.app.key, retries: 0 }).waitForJob(id, {
      onProgress({ progress }) {
        if (isHalfway(progress)) canceled ??= client.cancelJob(id)
      },
    })
    expect(await ended).toMatchObject({ status: 'FAILED' })
    await canceled
    expect(front.seen.filter((path) => path.endsWith('/events'))).toHaveLength(2)
    expect(front.seen.some((path) => path.endsWith('/status'))).toBe(true)
    await client.deleteJob(id)
  })

  test('continues with a new event stream if one breaks during a job', async () => {
    const front = await startFront(service.server.origin, [])
    const id = await held()
    let broke = false
    let canceled: Promise<unknown> | undefined
    const ended = createClient({ baseUrl: front.base, apiKey: service.app.key }).waitForJob(id, {
      onProgress({ progress }) {
        if (!isHalfway(progress)) return
        if (broke) canceled ??= client.cancelJob(id)
        else front.dropConnections()
        broke = true
      },
    })
    expect(await ended).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
    await canceled
    expect(front.seen.filter((path) => path.endsWith('/events'))).toHaveLength(2)
    await client.deleteJob(id)
  })
})

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000)
}
