import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { storeUnavailable } from '../../../src/core/engine/errors.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { decideRange } from '../../../src/http/storage/range.js'
import { UrlSigner } from '../../../src/http/auth/signed-url.js'
import { type JobJson, separated, type Service, serviceOfTest, startService } from '../harness.js'

const secret = 'a secret of at least thirty-two characters'
const content = 'abcdefghijklmnopqrstuvwxyz'

let service: Service
let link: string
let job: JobJson
beforeAll(async () => {
  service = await startService({ http: { secrets: [secret] } })
  job = await separated(service, Buffer.from(content))
  link = job.result?.vocals ?? ''
})
afterAll(() => service.close())

describe('a result link', () => {
  test('needs no key, names the file, and cannot be shown as a page of the host', async () => {
    const answer = await fetch(link)
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe(content)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'audio/wav',
      'content-length': '26',
      'content-disposition': 'attachment; filename="vocals.wav"',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    })
  })

  test('answers HEAD with the same headers and no body', async () => {
    const [get, head] = [await fetch(link), await fetch(link, { method: 'HEAD' })]
    const without = (answer: Response) =>
      Object.fromEntries(
        [...answer.headers].filter(
          ([name]) => !['connection', 'date', 'keep-alive', 'ratelimit', 'x-request-id'].includes(name),
        ),
      )
    expect(without(head)).toEqual(without(get))
    expect(await head.text()).toBe('')
  })

  test.each([
    ['bytes=0-4', 206, 'abcde', 'bytes 0-4/26'],
    ['bytes=20-', 206, 'uvwxyz', 'bytes 20-25/26'],
    ['bytes=-3', 206, 'xyz', 'bytes 23-25/26'],
    ['bytes=-100', 206, content, 'bytes 0-25/26'],
    ['bytes=25-100', 206, 'z', 'bytes 25-25/26'],
    ['bytes=0-0,5-6', 200, content, null],
    ['bytes=5-2', 200, content, null],
    ['bytes=-', 200, content, null],
    ['lines=1-2', 200, content, null],
  ])('answers Range: %s with %i', async (range, status, body, contentRange) => {
    const answer = await fetch(link, { headers: { range } })
    expect([answer.status, await answer.text(), answer.headers.get('content-range')]).toEqual([
      status,
      body,
      contentRange,
    ])
    expect(answer.headers.get('content-length')).toBe(String(body.length))
  })

  test.each(['bytes=26-', 'bytes=-0'])('answers Range: %s with 416 and a message', async (range) => {
    const answer = await fetch(link, { headers: { range } })
    expect([answer.status, answer.headers.get('content-range')]).toEqual([416, 'bytes */26'])
    expect(await answer.json()).toMatchObject({
      code: 'RANGE_NOT_SATISFIABLE',
      message: 'The file has 26 bytes, but the range asks for none of them. Ask for a range within the file.',
    })
  })

  test('answers 304 for a copy that is still valid, and a range only of the same file', async () => {
    const etag = (await fetch(link)).headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[^"]+"$/)
    expect((await fetch(link, { headers: { 'if-none-match': etag } })).status).toBe(304)
    expect((await fetch(link, { headers: { 'if-none-match': `"other", W/${etag}` } })).status).toBe(304)
    expect((await fetch(link, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
    expect((await fetch(link, { headers: { range: 'bytes=0-1', 'if-range': etag } })).status).toBe(206)
    expect((await fetch(link, { headers: { range: 'bytes=0-1', 'if-range': '"other"' } })).status).toBe(200)
    const changed = await fetch(link, { headers: { 'if-match': '"other"' } })
    expect([changed.status, changed.headers.get('etag')]).toEqual([412, etag])
    expect(await changed.json()).toMatchObject({
      code: 'PRECONDITION_FAILED',
      message: expect.stringContaining('If-Match'),
    })
  })

  test('is renewed each time the job is read', async () => {
    const now = Math.ceil(Date.now() / 1000) * 1000
    vi.useFakeTimers({ toFake: ['Date'], now })
    onTestFinished(() => void vi.useRealTimers())
    const signer = new UrlSigner([secret])
    const again = (await (await service.api(`/job/${job.id}`)).json()) as JobJson
    const url = new URL(again.result?.vocals ?? '')
    const key = url.pathname.slice(url.pathname.indexOf('results/'))
    const grant = signer.verify('GET', key, url.searchParams)
    expect(grant).toMatchObject({ app: service.app.id, key })
    expect(grant?.expiresAt).toBe(now / 1000 + 3600)
  })
})

test('a result whose file was lost is not refused as one that no job has', async () => {
  const lost = await separated(service, Buffer.from(content))
  const url = lost.result?.vocals ?? ''
  await service.engine.blobs.deletePrefix(`results/${lost.id}/`)
  for (const init of [{}, { headers: { range: 'bytes=0-4' } }]) {
    const answer = await fetch(url, init)
    expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
      404,
      expect.stringContaining('of a finished job is no longer in the storage'),
    ])
  }
  await service.api(`/job/${lost.id}`, { method: 'DELETE' })
  expect(((await (await fetch(url)).json()) as { message: string }).message).toBe('There is no such file.')
})

test.each(['http', 'fetch'])(
  'a file that the store cannot read to its end is told to the operator (%s)',
  async (way) => {
    const blobs = memoryBlobs()
    const failing: BlobStore = {
      ...blobs,
      async get(key, options) {
        const blob = await blobs.get(key, options)
        if (!key.startsWith('results/')) return blob
        const body = async function* () {
          yield Buffer.from('abc')
          throw storeUnavailable('Could not read a blob: the file system answered EIO.')
        }
        return blob && { ...blob, body: body() }
      },
    }
    const logger = { ...silentLogger, error: vi.fn() }
    const broken = await serviceOfTest({ blobs: failing, engine: { logger } })
    const url = (await separated(broken, Buffer.from(content))).result?.vocals ?? ''
    const answer = way === 'http' ? await fetch(url) : await broken.handler(new Request(url))
    await expect(answer.text()).rejects.toThrow(/terminated|EIO/)
    expect(logger.error.mock.calls).toEqual([
      [
        {
          requestId: answer.headers.get('x-request-id'),
          method: 'GET',
          operation: 'downloadFile',
          err: expect.objectContaining({ code: 'STORE_UNAVAILABLE' }),
        },
        'A request failed inside the service.',
      ],
    ])
  },
)

describe('a link is refused with 403', () => {
  const forged = (change: (url: URL) => void) => {
    const url = new URL(link)
    change(url)
    return fetch(url)
  }

  test.each([
    ['without a signature', (url: URL) => url.searchParams.delete('signature')],
    ['with another signature', (url: URL) => url.searchParams.set('signature', 'A'.repeat(43))],
    ['with a longer life', (url: URL) => url.searchParams.set('expires', '99999999999')],
    ['with another application', (url: URL) => url.searchParams.set('app', 'other')],
    ['with an unknown signing key', (url: URL) => url.searchParams.set('key', '00000000')],
    ['with a parameter twice', (url: URL) => url.searchParams.append('expires', '99999999999')],
    ['for another file', (url: URL) => void (url.pathname = url.pathname.replace('vocals', 'accompaniments'))],
    ['with no parameters', (url: URL) => void (url.search = '')],
  ])('%s', async (_what, change) => {
    const answer = await forged(change)
    expect(answer.status).toBe(403)
    expect(await answer.json()).toMatchObject({ code: 'FORBIDDEN' })
  })

  test('when it has expired', async () => {
    const url = new URL(link)
    const key = url.pathname.slice(url.pathname.indexOf('results/'))
    url.search = new UrlSigner([secret])
      .sign({ method: 'GET', key, app: service.app.id, expiresAt: Math.floor(Date.now() / 1000) - 1, maxBytes: 0 })
      .toString()
    const answer = await fetch(url)
    expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
      403,
      expect.stringContaining('expired'),
    ])
  })

  test('when a link for reading is used for writing', async () => {
    expect((await fetch(link, { method: 'PUT', body: 'x' })).status).toBe(403)
    const { uploadUrl } = (await (await service.api('/upload')).json()) as { uploadUrl: string }
    expect((await fetch(uploadUrl)).status).toBe(403)
  })
})

test.each([
  '../../etc/passwd',
  '..%2f..%2fetc%2fpasswd',
  'results/../../x',
  'results//x',
  'results/a/%00',
  'other/a',
  'results',
  'uploads/..',
  'uploads/a/.',
  'uploads\\a',
  `uploads/${'a'.repeat(2000)}`,
])('the storage path %s leads nowhere', async (path) => {
  const answer = await fetch(`${service.base}/storage/${path}${new URL(link).search}`)
  expect([403, 404]).toContain(answer.status)
})

describe('signing', () => {
  const grant = { method: 'GET', key: 'results/a/1/b.wav', app: 'app', expiresAt: 2_000_000_000, maxBytes: 0 } as const

  test('accepts the old secret while it is listed after the new one', () => {
    const query = new UrlSigner(['old'.repeat(20)]).sign(grant)
    expect(new UrlSigner(['new'.repeat(20), 'old'.repeat(20)]).verify('GET', grant.key, query)).toEqual(grant)
    expect(new UrlSigner(['new'.repeat(20)]).verify('GET', grant.key, query)).toBeUndefined()
  })

  test('covers the size limit of an upload', () => {
    const signer = new UrlSigner([secret])
    const query = signer.sign({ ...grant, method: 'PUT', maxBytes: 10 })
    expect(signer.verify('PUT', grant.key, query)?.maxBytes).toBe(10)
    query.set('limit', '11')
    expect(signer.verify('PUT', grant.key, query)).toBeUndefined()
  })

  test('cannot be moved from one field into the next', () => {
    const signer = new UrlSigner([secret])
    const query = signer.sign({ ...grant, app: 'app' })
    expect(signer.verify('GET', `${grant.key}","app`, query)).toBeUndefined()
  })
})

test('a removed result answers 410 while its job is listed', async () => {
  const own = await serviceOfTest({ engine: { retention: { resultsMs: 0 } } })
  const ended = await separated(own, Buffer.from(content))
  await own.engine.sweep()
  const answer = await fetch(ended.result?.vocals ?? '')
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([410, 'GONE'])
  expect((await own.api(`/job/${ended.id}`)).status).toBe(200)
})

test('dates decide if there is no ETag', () => {
  const stat = { bytes: 10, etag: 'e', modifiedAt: Date.parse('2025-01-01T00:00:00.500Z') }
  const decide = (headers: Record<string, string>) => decideRange(new Headers(headers), stat).kind
  expect(decide({ 'if-modified-since': 'Wed, 01 Jan 2025 00:00:00 GMT' })).toBe('unchanged')
  expect(decide({ 'if-modified-since': 'Tue, 31 Dec 2024 23:59:59 GMT' })).toBe('whole')
  expect(decide({ 'if-unmodified-since': 'Tue, 31 Dec 2024 23:59:59 GMT' })).toBe('changed')
  expect(decide({ range: 'bytes=0-1', 'if-range': 'Wed, 01 Jan 2025 00:00:00 GMT' })).toBe('part')
  expect(decide({ range: 'bytes=0-1', 'if-range': 'Tue, 31 Dec 2024 00:00:00 GMT' })).toBe('whole')
})

test('a date in an older form decides likewise, and what is no HTTP date is ignored', () => {
  const stat = { bytes: 10, etag: 'e', modifiedAt: Date.parse('2025-01-01T00:00:00Z') }
  const decide = (headers: Record<string, string>) => decideRange(new Headers(headers), stat).kind
  for (const since of ['Wednesday, 01-Jan-25 00:00:00 GMT', 'Wed Jan  1 00:00:00 2025'])
    expect(decide({ 'if-modified-since': since }), since).toBe('unchanged')
  for (const since of ['Tuesday, 31-Dec-24 23:59:59 GMT', 'Tue Dec 31 23:59:59 2024'])
    expect(decide({ 'if-unmodified-since': since }), since).toBe('changed')
  for (const since of ['rubbish', '2099', '2099-01-01', '2099-01-01T00:00:00Z', 'Thu, 01 Foo 2099 00:00:00 GMT'])
    expect(decide({ 'if-modified-since': since }), since).toBe('whole')
  for (const since of ['rubbish', '1', '2000-01-01', 'Sat, 01 Jan 2000 00:00:00 +0000'])
    expect(decide({ 'if-unmodified-since': since }), since).toBe('whole')
  expect(decide({ range: 'bytes=0-1', 'if-range': '2025-01-01T00:00:00Z' })).toBe('whole')
})
