import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Upload } from 'tus-js-client'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { s3Blobs } from '../../../src/adapters/blobs/s3/index.js'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { createClient } from '../../../src/client/client.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { s3ClientOf } from '../../servers/s3-client.js'
import { startS3Server } from '../../servers/s3-server.js'
import { gate } from '../../engine/harness.js'
import { type CuttingProxy, cuttingProxy } from './cutting-proxy.js'
import { separated, type Service, serviceOfTest, type ServiceSettings } from '../harness.js'

const mebibyte = 1024 ** 2
afterEach(() => void vi.useRealTimers())

async function offering(settings: ServiceSettings = {}): Promise<Service> {
  return serviceOfTest({ ...settings, http: { resumableUploads: true, ...settings.http } })
}

async function cutting(service: Service, bytesOfConnection: number): Promise<CuttingProxy> {
  const proxy = await cuttingProxy(service.server.port, bytesOfConnection)
  onTestFinished(() => proxy.close())
  return proxy
}

async function keys(blobs: BlobStore): Promise<string[]> {
  const found: string[] = []
  for await (const { key } of blobs.list('uploads/')) found.push(key.split('/').slice(2).join('/'))
  return found
}

/** A request of the protocol, to an upload or to the address that creates uploads. */
function tus(
  service: Service,
  method: string,
  options: { url?: string; headers?: Record<string, string>; body?: string; key?: string } = {},
) {
  return fetch(options.url ?? `${service.base}/upload/resumable`, {
    method,
    headers: {
      authorization: options.key ?? service.app.key,
      'tus-resumable': '1.0.0',
      ...(options.body === undefined ? {} : { 'content-type': 'application/offset+octet-stream' }),
      ...options.headers,
    },
    body: options.body,
  })
}

async function begin(service: Service, bytes: number): Promise<{ url: string; downloadUrl: string }> {
  const answer = await tus(service, 'POST', { headers: { 'upload-length': String(bytes) } })
  expect(answer.status, await answer.text()).toBe(201)
  return { url: answer.headers.get('location')!, downloadUrl: answer.headers.get('download-url')! }
}

/** A request that has sent the beginning of a file of ten bytes. */
async function sending(service: Service, url: string, bytes: string): Promise<ClientRequest> {
  const sent = request(url, {
    method: 'PATCH',
    headers: {
      authorization: service.app.key,
      'tus-resumable': '1.0.0',
      'upload-offset': '0',
      'content-type': 'application/offset+octet-stream',
      'content-length': '10',
    },
  })
  sent.on('error', () => {})
  onTestFinished(() => void sent.destroy())
  await new Promise<void>((resolve) => sent.write(bytes, () => resolve()))
  return sent
}

async function vocalsOf(service: Service, inputUrl: string): Promise<Buffer> {
  const { result, error } = await separated(service, inputUrl)
  expect(error).toBeNull()
  return Buffer.from(await (await fetch(result!.vocals!)).arrayBuffer())
}

const stores: [string, () => Promise<BlobStore>][] = [
  [
    'a folder',
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'stemwork-resumable-'))
      onTestFinished(() => rm(directory, { recursive: true }))
      return fsBlobs({ directory })
    },
  ],
  [
    'S3',
    async () => {
      const server = await startS3Server()
      const client = s3ClientOf(server)
      onTestFinished(async () => (client.destroy(), await server.close()))
      return s3Blobs({ client, bucket: 'test' })
    },
  ],
]

it('lists the pieces once, not for each of them, and continues after one of another process', async () => {
  const blobs = memoryBlobs()
  const listed = vi.spyOn(blobs, 'list')
  const service = await offering({ blobs })
  const { url } = await begin(service, 12)
  const send = async (offset: number, body: string) => {
    const headers = { 'upload-offset': String(offset) }
    const answer = await tus(service, 'PATCH', { url, headers, body })
    return [answer.status, answer.headers.get('upload-offset')]
  }
  for (let offset = 0; offset < 5; offset++) expect(await send(offset, 'x')).toEqual([204, String(offset + 1)])
  // Listed only before the first part: later listings would take longer and longer.
  expect(listed.mock.calls.filter(([prefix]) => prefix.endsWith('.parts/')).length).toBeLessThan(3)
  const id = url.split('/').at(-1)
  await blobs.put(`uploads/${service.app.id}/${id}.parts/${'5'.padStart(16, '0')}`, 'abc')
  expect(await send(5, 'x')).toEqual([409, null])
  expect(await send(8, '1234')).toEqual([204, '12'])
})

it('does not make a short file of what is left once the sweep has removed its first pieces', async () => {
  const blobs = memoryBlobs()
  const service = await offering({ blobs })
  const { url } = await begin(service, 8)
  const send = async (offset: number, body: string) =>
    (await tus(service, 'PATCH', { url, headers: { 'upload-offset': String(offset) }, body })).status
  expect(await send(0, 'abcd')).toBe(204)
  const file = `uploads/${service.app.id}/${url.split('/').at(-1)}`
  await blobs.delete(`${file}.parts/${'0'.repeat(16)}`)
  expect(await send(4, 'efgh')).toBe(410)
  expect(await blobs.stat(file)).toBeUndefined()
})

it('says at both of its addresses which protocol it speaks', async () => {
  const service = await offering()
  for (const path of ['', '/8d3b1c9e-5a4f-4e0b-9d2c-7f6a5b4c3d2e']) {
    const answer = await tus(service, 'OPTIONS', { url: `${service.base}/upload/resumable${path}`, key: 'none' })
    const told = ['tus-version', 'tus-resumable', 'tus-extension'].map((name) => answer.headers.get(name))
    expect([answer.status, ...told]).toEqual([
      204,
      '1.0.0',
      '1.0.0',
      'creation,creation-with-upload,termination,expiration',
    ])
  }
  expect((await fetch(`${service.base}/upload`, { method: 'OPTIONS' })).headers.get('tus-version')).toBeNull()
})

describe.each(stores)('an upload into %s', (_name, open) => {
  it('by the official tus client continues after each interruption, and its file can be used for a job', async () => {
    const blobs = await open()
    const service = await offering({ blobs })
    const network = await cutting(service, mebibyte)
    const file = randomBytes(4 * mebibyte + 1)
    let downloadUrl: string | undefined
    await new Promise<void>((resolve, reject) => {
      const upload = new Upload(file, {
        endpoint: `${network.origin}/v1/upload/resumable`,
        headers: { authorization: service.app.key },
        retryDelays: Array.from({ length: 8 }, () => 10),
        onAfterResponse: (_request, response) => void (downloadUrl ??= response.getHeader('Download-Url') ?? undefined),
        onSuccess: () => resolve(),
        onError: reject,
      })
      upload.start()
    })
    // No connection can carry the whole file, so each resumed where the previous one was cut.
    expect(network.cuts).toBeGreaterThanOrEqual(4)
    expect((await vocalsOf(service, downloadUrl!)).equals(file)).toBe(true)
    const id = new URL(downloadUrl!).pathname.split('/').at(-1)
    expect(await keys(blobs)).toEqual([id, `${id}.resumable`])
  })
})

describe('the client', () => {
  it('resumes larger files if the service offers it, with progress; small ones need no extra requests', async () => {
    const service = await offering()
    const network = await cutting(service, 5 * mebibyte)
    const client = createClient({ baseUrl: `${network.origin}/v1`, apiKey: service.app.key })
    const file = randomBytes(9 * mebibyte)
    const progress: number[] = []
    const { downloadUrl } = await client.upload(new Blob([file]), { onProgress: ({ bytes }) => progress.push(bytes) })
    expect(network.cuts).toBeGreaterThanOrEqual(1)
    expect(progress.at(-1)).toBe(file.byteLength)
    expect((await vocalsOf(service, downloadUrl)).equals(file)).toBe(true)
    const small = await client.upload(Buffer.from('small'))
    expect((await vocalsOf(service, small.downloadUrl)).toString()).toBe('small')
  })
})

it('a service without resumable uploads says so, and what to use', async () => {
  const service = await serviceOfTest()
  const answer = await tus(service, 'POST', {})
  expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
    404,
    expect.stringMatching(/no resumable uploads.*PUT.*\/v1\/upload returns/),
  ])
})

/** A client whose resumable upload meets these answers, one after another. */
function clientMeeting(answer: (tries: number) => Response) {
  let tries = 0
  const fetch = async (_input: string | URL | Request, { method = 'GET' }: RequestInit = {}) => {
    if (method === 'GET') return Response.json({ uploadUrl: 'http://a/x', resumableUrl: 'http://a/begin' })
    if (method === 'POST')
      return new Response(null, { status: 201, headers: { location: 'http://a/z', 'download-url': 'http://a/y' } })
    return answer(++tries)
  }
  return createClient({ baseUrl: 'http://a', apiKey: 'key', retries: 0, fetch })
}

it('the client waits a minute at most, however long a proxy asks for', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  let asked = 0
  const client = clientMeeting((tries) => {
    asked = tries
    if (tries < 20) return new Response(null, { status: 502, headers: { 'retry-after': '99999999' } })
    return new Response(null, { status: 204, headers: { 'upload-offset': String(9 * mebibyte) } })
  })
  const uploading = client.upload(Buffer.alloc(9 * mebibyte), { onInterrupted: () => undefined })
  await vi.advanceTimersByTimeAsync(59_000)
  expect(asked).toBe(1)
  await vi.advanceTimersByTimeAsync(19 * 60_000)
  expect(await uploading).toEqual({ downloadUrl: 'http://a/y' })
})

it('the client waits for a connection as long as it takes, if it can report that', async () => {
  // A network that is down for minutes.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const size = 9 * mebibyte
  const [outage, stored] = [90, 5 * mebibyte]
  const asked: string[] = []
  const fetch = async (input: string | URL | Request, { method = 'GET', headers }: RequestInit = {}) => {
    const url = input instanceof Request ? input.url : input.toString()
    const offset = new Headers(headers).get('upload-offset')
    if (url.endsWith('/upload'))
      return Response.json({ uploadUrl: 'http://a/x', downloadUrl: 'http://a/y', resumableUrl: 'http://a/begin' })
    if (method === 'POST')
      return new Response(null, { status: 201, headers: { location: 'http://a/z', 'download-url': 'http://a/y' } })
    asked.push(`${method} ${offset ?? ''}`.trim())
    if (asked.length <= outage) throw new TypeError('fetch failed')
    return new Response(null, { status: 204, headers: { 'upload-offset': String(stored) } })
  }
  const client = createClient({ baseUrl: 'http://a', apiKey: 'key', fetch })
  const attempt = (onInterrupted?: () => void) => {
    asked.length = 0
    const uploading = client.upload(new Blob([Buffer.alloc(size)]), { onInterrupted }).catch((error: unknown) => error)
    return vi.advanceTimersByTimeAsync(60 * 60 * 1000).then(() => uploading)
  }
  expect(await attempt()).toMatchObject({ code: 'NETWORK' })
  const interrupted = vi.fn()
  expect(await attempt(interrupted)).toEqual({ downloadUrl: 'http://a/y' })
  expect(interrupted.mock.calls.length).toBeGreaterThan(8)
  // Stored bytes are not sent again.
  expect(asked.filter((one) => one.startsWith('PATCH'))).toEqual(['PATCH 0', `PATCH ${stored}`])
})

it('after a long outage, the client also retries when the service is still busy', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const client = clientMeeting((tries) => {
    if (tries <= 20) return new Response(null, { status: 502 })
    if (tries <= 22) return new Response(null, { status: 503 })
    return new Response(null, { status: 204, headers: { 'upload-offset': String(9 * mebibyte) } })
  })
  const uploading = client.upload(Buffer.alloc(9 * mebibyte), { onInterrupted: () => undefined })
  uploading.catch(() => {})
  await vi.advanceTimersByTimeAsync(60 * 60_000)
  expect(await uploading).toEqual({ downloadUrl: 'http://a/y' })
})

it('the client reports a full storage at once', async () => {
  const interrupted = vi.fn()
  const client = clientMeeting(() =>
    Response.json({ code: 'STORAGE_FULL' }, { status: 429, headers: { 'retry-after': '600' } }),
  )
  const uploading = client.upload(Buffer.alloc(9 * mebibyte), { onInterrupted: interrupted })
  await expect(uploading).rejects.toMatchObject({ code: 'STORAGE_FULL' })
  expect(interrupted).not.toHaveBeenCalled()
})

describe('an upload that can be resumed', () => {
  it('keeps what came before an interruption, and the next request ends one that hangs', async () => {
    const service = await offering()
    const { url } = await begin(service, 10)
    await sending(service, url, '0123')
    const offset = async () => Number((await tus(service, 'HEAD', { url })).headers.get('upload-offset'))
    while ((await offset()) < 4) await new Promise((resolve) => setTimeout(resolve, 20))
    const rest = await tus(service, 'PATCH', { url, headers: { 'upload-offset': '4' }, body: '456789' })
    expect([rest.status, rest.headers.get('upload-offset')]).toEqual([204, '10'])
    expect(await offset()).toBe(10)
  })

  it('is complete even if the service failed between its last byte and its file', async () => {
    const blobs = memoryBlobs()
    let fails = true
    const failing: BlobStore = {
      ...blobs,
      put(key, source, options) {
        if (fails && /\/[0-9a-f-]{36}$/.test(key)) return Promise.reject(new Error('crash'))
        return blobs.put(key, source, options)
      },
    }
    const service = await offering({ blobs: failing })
    const { url, downloadUrl } = await begin(service, 4)
    const failed = await tus(service, 'PATCH', { url, headers: { 'upload-offset': '0' }, body: 'song' })
    expect([failed.status, ((await failed.json()) as { code: string }).code]).toEqual([500, 'INTERNAL_ERROR'])
    fails = false
    expect((await tus(service, 'HEAD', { url })).headers.get('upload-offset')).toBe('4')
    expect((await vocalsOf(service, downloadUrl)).toString()).toBe('song')
  })

  it('is joined once, however often the client asks meanwhile', async () => {
    const blobs = memoryBlobs()
    const joined = gate()
    let joins = 0
    let looks = 0
    const slow: BlobStore = {
      ...blobs,
      get: (key, options) => (looks++, blobs.get(key, options)),
      async put(key, source, options) {
        if (!/\/[0-9a-f-]{36}$/.test(key)) return await blobs.put(key, source, options)
        joins++
        await joined.opened
        return await blobs.put(key, source, options)
      },
    }
    const service = await offering({ blobs: slow })
    const { url, downloadUrl } = await begin(service, 4)
    const sent = tus(service, 'PATCH', { url, headers: { 'upload-offset': '0' }, body: 'song' })
    await expect.poll(() => joins).toBe(1)
    looks = 0
    const asked = tus(service, 'HEAD', { url })
    await expect.poll(() => looks).toBe(1)
    // Time for another join to begin.
    await new Promise((resolve) => setTimeout(resolve, 100))
    joined.open()
    expect([(await sent).status, (await asked).headers.get('upload-offset'), joins]).toEqual([204, '4', 1])
    expect((await vocalsOf(service, downloadUrl)).toString()).toBe('song')
  })

  it('exists only for its own application', async () => {
    const service = await offering()
    const { url } = await begin(service, 4)
    const { key } = await service.addApplication('Other')
    for (const [method, headers, body] of [
      ['HEAD', {}, undefined],
      ['PATCH', { 'upload-offset': '0' }, 'evil'],
      ['DELETE', {}, undefined],
    ] as const)
      expect((await tus(service, method, { url, key, headers, body })).status).toBe(404)
    expect((await tus(service, 'HEAD', { url, key: 'stw_wrong' })).status).toBe(401)
    expect((await tus(service, 'DELETE', { url })).status).toBe(204)
    expect((await tus(service, 'HEAD', { url })).status).toBe(404)
    expect(await keys(service.engine.blobs)).toEqual([])
  })

  it('goes on while another application asks for it by its id', async () => {
    const blobs = memoryBlobs()
    let begun = () => {}
    const storing = new Promise<void>((resolve) => (begun = resolve))
    const watched: BlobStore = {
      ...blobs,
      put(key, source, options) {
        if (key.includes('.parts/')) begun()
        return blobs.put(key, source, options)
      },
    }
    const service = await offering({ blobs: watched })
    const { key } = await service.addApplication('Other')
    const { url } = await begin(service, 10)
    const sent = await sending(service, url, '0123')
    await storing
    for (const method of ['HEAD', 'DELETE']) expect((await tus(service, method, { url, key })).status).toBe(404)
    sent.end('456789')
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    expect([answer.statusCode, answer.headers['upload-offset']]).toEqual([204, '10'])
  })

  it('may come with empty metadata, as from tuspy', async () => {
    const service = await offering()
    const headers = { 'upload-length': '4', 'upload-metadata': '' }
    const answer = await tus(service, 'POST', { headers, body: 'song' })
    expect(answer.status, await answer.text()).toBe(201)
    expect(await (await fetch(answer.headers.get('download-url')!)).text()).toBe('song')
  })

  it('is refused with the reason if it is too large, does not fit, or breaks the protocol', async () => {
    const limits = { storedBytes: 1000 }
    const service = await offering({ engine: { limits: { maxFileBytes: 2000 } }, http: { limits } })
    const refused = async (answer: Promise<Response>) => {
      const { status, code, message } = (await (await answer).json()) as {
        status: number
        code: string
        message: string
      }
      return [status, code, message]
    }
    const { url } = await begin(service, 500)
    expect(await refused(tus(service, 'POST', { headers: { 'upload-length': '2001' } }))).toEqual([
      413,
      'TOO_LARGE',
      expect.stringMatching(/larger than the limit of 2000 bytes/),
    ])
    expect(await refused(tus(service, 'POST', { headers: { 'upload-length': '1001' } }))).toEqual([
      429,
      'STORAGE_FULL',
      expect.stringMatching(/fill its 1000 bytes/),
    ])
    expect(await refused(tus(service, 'PATCH', { url, headers: { 'upload-offset': '3' }, body: 'x' }))).toEqual([
      409,
      'CONFLICT',
      expect.stringMatching(/offset/),
    ])
    const tooMuch = tus(service, 'PATCH', { url, headers: { 'upload-offset': '0' }, body: 'x'.repeat(501) })
    expect(await refused(tooMuch)).toEqual([413, 'TOO_LARGE', expect.stringMatching(/^More bytes came than .*left/)])
    const longer = tus(service, 'POST', { headers: { 'upload-length': '3' }, body: 'four' })
    expect(await refused(longer)).toEqual([413, 'TOO_LARGE', expect.stringMatching(/^More bytes came than .*left/)])
    const notTus = expect.stringMatching(/^The request is not one of tus 1\.0: .*[^.]\. Use a client of /)
    for (const version of ['', '0.2.2'])
      expect(await refused(tus(service, 'PATCH', { url, headers: { 'tus-resumable': version } }))).toEqual([
        412,
        'PRECONDITION_FAILED',
        notTus,
      ])
    // Headers of extensions that the service does not offer.
    const deferred = { 'upload-defer-length': '1' }
    for (const headers of [deferred, { 'upload-concat': 'partial', 'upload-length': '1' }])
      expect(await refused(tus(service, 'POST', { headers }))).toEqual([400, 'BAD_INPUT', notTus])
    expect(await refused(tus(service, 'POST'))).toEqual([400, 'BAD_INPUT', notTus])
    const named = { 'upload-length': '1', 'upload-metadata': 'a b c' }
    expect(await refused(tus(service, 'POST', { headers: named }))).toEqual([400, 'BAD_INPUT', notTus])
    // Another upload has meanwhile taken the space.
    await service.uploaded(Buffer.alloc(800))
    const full = tus(service, 'PATCH', { url, headers: { 'upload-offset': '0' }, body: 'x'.repeat(500) })
    expect((await refused(full)).slice(0, 2)).toEqual([429, 'STORAGE_FULL'])
  })

  it('ends when it expires, and what is stored of it is swept', async () => {
    const service = await offering()
    const { url } = await begin(service, 10)
    await tus(service, 'PATCH', { url, headers: { 'upload-offset': '0' }, body: 'half' })
    expect((await keys(service.engine.blobs)).length).toBe(2)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 25 * 60 * 60 * 1000 })
    expect((await tus(service, 'HEAD', { url })).status).toBe(410)
    expect((await service.engine.sweep({ files: true })).uploads).toBe(2)
    expect(await keys(service.engine.blobs)).toEqual([])
  })

  it('accepts no second file once its file was removed with its job', async () => {
    const service = await offering()
    const { url, downloadUrl } = await begin(service, 4)
    await tus(service, 'PATCH', { url, headers: { 'upload-offset': '0' }, body: 'song' })
    await vocalsOf(service, downloadUrl)
    const [{ id }] = (await (await service.api('/job')).json()) as [{ id: string }]
    await service.api(`/job/${id}`, { method: 'DELETE' })
    expect((await tus(service, 'HEAD', { url })).status).toBe(410)
  })
})

it('a service that does not offer it has the two links of the specification, and nothing else', async () => {
  const service = await serviceOfTest()
  expect(Object.keys((await (await service.api('/upload')).json()) as object).sort()).toEqual([
    'downloadUrl',
    'uploadUrl',
  ])
  expect((await tus(service, 'POST', { headers: { 'upload-length': '1' } })).status).toBe(404)
})
