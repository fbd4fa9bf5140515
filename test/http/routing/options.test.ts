import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { withFaults } from '../../../src/contract/faults.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { createHandler } from '../../../src/http/index.js'
import { rateLimiter } from '../../../src/http/routing/rate-limit.js'
import { recordingLogger } from '../../engine/harness.js'
import { serviceOfTest, startService } from '../harness.js'
import { stemsId } from '../light-workflows.js'

describe('rate limits', () => {
  test('refuse with 429, Retry-After and RateLimit headers, for each application and kind of request', async () => {
    const service = await serviceOfTest({
      worker: false,
      http: { rateLimits: { create: { requests: 2, perSeconds: 60 }, other: { requests: 3, perSeconds: 60 } } },
    })
    const first = await service.submit()
    expect([first.headers.get('ratelimit-policy'), first.headers.get('ratelimit')]).toEqual([
      '"create";q=2;w=60',
      '"create";r=1;t=30',
    ])
    const { id } = (await first.json()) as { id: string }
    expect((await service.submit()).status).toBe(200)
    const refused = await service.submit()
    expect(refused.status).toBe(429)
    expect(refused.headers.get('ratelimit')).toMatch(/^"create";r=0;t=\d+$/)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(20)
    expect(await refused.json()).toMatchObject({ code: 'RATE_LIMITED' })

    for (let index = 0; index < 3; index++) expect((await service.api('/application')).status).toBe(200)
    expect((await service.api('/application')).status).toBe(429)
    for (let index = 0; index < 100; index++) expect((await service.api(`/job/${id}/status`)).status).toBe(200)
    const { key } = await service.addApplication('Other')
    expect((await service.api('/application', { key })).status).toBe(200)
  })

  test('fill up again with time, never above the limit', () => {
    let now = 0
    const create = { requests: 2, perSeconds: 1 }
    const limiter = rateLimiter({ create, status: false, other: false, link: false }, () => now)
    const take = () => {
      try {
        limiter.take('app', 'create', {})
        return true
      } catch {
        return false
      }
    }
    expect([take(), take(), take()]).toEqual([true, true, false])
    now = 500
    expect([take(), take()]).toEqual([true, false])
    now = 60_000
    expect([take(), take(), take()]).toEqual([true, true, false])
    const headers = {}
    limiter.take('app', 'status', headers)
    expect(headers).toEqual({})
  })

  test('hold for the queue of an application: 429 QUEUE_FULL', async () => {
    const service = await serviceOfTest({ worker: false, engine: { limits: { maxQueuedJobs: 1 } } })
    expect((await service.submit()).status).toBe(200)
    const refused = await service.submit()
    expect([
      refused.status,
      refused.headers.has('retry-after'),
      ((await refused.json()) as { code: string }).code,
    ]).toEqual([429, true, 'QUEUE_FULL'])
  })
})

describe('CORS', () => {
  test('is off unless turned on', async () => {
    const service = await serviceOfTest()
    const answer = await service.api('/application', { headers: { origin: 'https://app.example' } })
    expect(answer.headers.has('access-control-allow-origin')).toBe(false)
  })

  test('lets listed origins in, on errors and files too, and answers preflights without a key', async () => {
    const service = await serviceOfTest({ http: { cors: { origins: ['https://app.example'] } } })
    const allowed = async (origin: string, path: string) =>
      (await fetch(service.base + path, { headers: { origin } })).headers.get('access-control-allow-origin')
    expect(await allowed('https://app.example', '/application')).toBe('https://app.example')
    expect(await allowed('https://app.example', '/storage/results/a/1/b.wav')).toBe('https://app.example')
    expect(await allowed('https://evil.example', '/application')).toBeNull()
    const preflight = await fetch(`${service.base}/job`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    })
    expect(preflight.status).toBe(204)
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': 'https://app.example',
      'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
      'access-control-allow-headers': expect.stringContaining('Authorization'),
      vary: 'Origin',
    })
  })

  test('leave caches what an answer varies by besides', async () => {
    const service = await serviceOfTest({ http: { cors: { origins: ['https://app.example'] } } })
    expect((await fetch(`${service.base}/openapi.json`)).headers.get('vary')).toBe('accept-encoding, Origin')
  })
})

describe('links', () => {
  test('begin with publicUrl, whatever the request says', async () => {
    const service = await serviceOfTest({ http: { publicUrl: 'https://stems.example.com/v1/' } })
    const { uploadUrl } = (await (await service.api('/upload')).json()) as { uploadUrl: string }
    expect(uploadUrl).toMatch(/^https:\/\/stems\.example\.com\/v1\/storage\/uploads\//)
  })

  test('follow X-Forwarded headers only if the proxy is trusted', async () => {
    const headers = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'stems.example.com',
      'x-forwarded-prefix': '/media',
    }
    for (const [trustProxy, start] of [
      [true, 'https://stems.example.com/media/v1/storage/'],
      [false, 'http://127.0.0.1'],
    ] as const) {
      const service = await serviceOfTest({ http: { trustProxy } })
      const { uploadUrl } = (await (await service.api('/upload', { headers })).json()) as { uploadUrl: string }
      expect(uploadUrl.startsWith(start)).toBe(true)
    }
  })

  test.each(['a:b:c', '::::', '[', 'a:99999'])('do not follow the forwarded host %s, which is none', async (host) => {
    const service = await serviceOfTest({ http: { trustProxy: true } })
    const answer = await service.api('/docs', { headers: { 'x-forwarded-host': host } })
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining(service.base)])
  })

  test.each(['/..', '/../..', '/media/../..', '/.', '/media/./x', '//evil.example'])(
    'do not follow the forwarded prefix %s out of their path',
    async (prefix) => {
      const service = await serviceOfTest({ http: { trustProxy: true } })
      const answer = await service.api('/upload', { headers: { 'x-forwarded-prefix': prefix } })
      const { uploadUrl } = (await answer.json()) as { uploadUrl: string }
      expect(uploadUrl.startsWith(`${service.base}/storage/uploads/`)).toBe(true)
    },
  )

  test('live as long as the options say', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
    onTestFinished(() => void vi.useRealTimers())
    const service = await serviceOfTest({ http: { links: { uploadSeconds: 10, inputSeconds: 20 } } })
    const ticket = (await (await service.api('/upload')).json()) as { uploadUrl: string; downloadUrl: string }
    const left = (url: string) => Number(new URL(url).searchParams.get('expires')) - Date.now() / 1000
    expect([left(ticket.uploadUrl), left(ticket.downloadUrl)]).toEqual([10, 20])
  })
})

describe('direct storage', () => {
  test('gives out links of the blob store, and checks the size when the job is created', async () => {
    const blobs = {
      ...memoryBlobs(),
      signPut: async (key: string, { expiresInSeconds }: { expiresInSeconds: number }) =>
        `https://bucket.example/${key}?put=${expiresInSeconds}`,
      signGet: async (key: string, { fileName }: { fileName: string }) =>
        `https://bucket.example/${key}?name=${fileName}`,
    }
    const service = await serviceOfTest({
      blobs,
      engine: { limits: { maxFileBytes: 5 } },
      http: { directStorage: true },
    })
    const flow = async (content: string) => {
      const ticket = (await (await service.api('/upload')).json()) as { uploadUrl: string; downloadUrl: string }
      expect(ticket.uploadUrl).toMatch(/^https:\/\/bucket\.example\/uploads\/.+\?put=3600$/)
      await blobs.put(new URL(ticket.uploadUrl).pathname.slice(1), Buffer.from(content))
      const params = { inputUrl: ticket.downloadUrl }
      return service.submit({ workflow: stemsId, params }, { headers: { prefer: 'wait=10' } })
    }
    expect(await (await flow('song')).json()).toMatchObject({
      result: {
        vocals: expect.stringMatching(/^https:\/\/bucket\.example\/results\/.+\/vocals\.wav\?name=vocals\.wav$/),
      },
    })
    const refused = await flow('long song')
    expect([refused.status, await refused.json()]).toEqual([422, expect.objectContaining({ reason: 'too_large' })])
    // A form is larger than its file, to which the limit applies.
    const form = (content: string) =>
      `--cut\r\nContent-Disposition: form-data; name="filedata"; filename="a"\r\n\r\n${content}\r\n--cut--\r\n`
    expect(await (await flow(form('songs'))).json()).toMatchObject({ status: 'SUCCEEDED' })
    expect(await (await flow(form('long song'))).json()).toMatchObject({
      status: 'FAILED',
      error: { reason: 'too_large' },
    })
    const padded = await flow(form('x'.repeat(300_000)))
    expect([padded.status, await padded.json()]).toEqual([422, expect.objectContaining({ reason: 'too_large' })])
  })

  test('is refused with a store that cannot sign', async () => {
    const service = await serviceOfTest()
    expect(() => createHandler(service.engine, { directStorage: true })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTIONS' }),
    )
  })
})

describe('base paths', () => {
  test('may be several; a deprecated one says so', async () => {
    const deprecated = {
      '/api': { since: '2025-01-01', sunset: '2026-01-01', link: 'https://stems.example.com/changes' },
    }
    const service = await serviceOfTest({ http: { basePath: ['/v1', '/api'], deprecated } })
    const get = (base: string) =>
      fetch(`${service.server.origin}${base}/application`, { headers: { authorization: service.app.key } })
    expect((await get('/v1')).headers.has('deprecation')).toBe(false)
    const old = await get('/api')
    expect(old.status).toBe(200)
    expect(Object.fromEntries(old.headers)).toMatchObject({
      deprecation: '@1735689600',
      sunset: 'Thu, 01 Jan 2026 00:00:00 GMT',
      link: '<https://stems.example.com/changes>; rel="deprecation"',
    })
    expect((await get('')).status).toBe(404)
    expect((await get('/v11')).status).toBe(404)
  })

  test.each([
    [{ basePath: 'v1' }],
    [{ basePath: '/v1/' }],
    [{ secrets: ['short'] }],
    [{ publicUrl: 'ftp://x' }],
    [{ limits: { idleMs: 2 ** 31 } }],
    [{ links: { uploadSeconds: Number.MAX_SAFE_INTEGER } }],
    [{ unknown: 1 }],
  ])('wrong options are refused with their name: %j', async (http) => {
    const service = await serviceOfTest()
    const name = Object.keys(http)[0]
    expect(() => createHandler(service.engine, http as object)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTIONS', message: expect.stringContaining(name!) }),
    )
  })

  test('a publicUrl that is not https is warned of, except on this machine', async () => {
    const warnings: string[] = []
    const ignore = () => {}
    const logger = {
      debug: ignore,
      info: ignore,
      error: ignore,
      warn: (_fields: unknown, message: string) => void warnings.push(message),
    }
    for (const publicUrl of ['http://stems.example.com', 'http://localhost:8080/v1', 'http://127.0.0.1/v1'])
      await (await startService({ engine: { logger }, http: { publicUrl } })).close()
    expect(warnings).toEqual([expect.stringContaining('https')])
  })
})

describe('idempotency keys', () => {
  test('create one job for repeated and simultaneous requests, and refuse another body', async () => {
    const service = await serviceOfTest({ worker: false })
    const create = (fields: object, idempotencyKey = 'a-key', key?: string) =>
      service.submit(fields, { key, headers: { 'idempotency-key': idempotencyKey } })
    const answers = await Promise.all(Array.from({ length: 5 }, () => create({})))
    const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as { id: string }).id))
    expect(new Set(ids).size).toBe(1)
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200])
    const other = await create({ params: { note: 'other' } })
    expect([other.status, ((await other.json()) as { code: string }).code]).toEqual([422, 'IDEMPOTENCY_CONFLICT'])
    expect((await create({}, 'b-key')).status).toBe(200)
    expect((await create({}, 'x'.repeat(256))).status).toBe(400)
    const { key } = await service.addApplication('Other')
    const foreign = await create({}, 'a-key', key)
    expect(((await foreign.json()) as { id: string }).id).not.toBe(ids[0])
  })
})

describe('for operators', () => {
  test('health needs no key, under the base path and at the root', async () => {
    const service = await serviceOfTest()
    for (const base of [service.base, service.server.origin]) {
      expect(await (await fetch(`${base}/healthz`)).json()).toEqual({ ok: true })
      expect(await (await fetch(`${base}/readyz`)).json()).toEqual({ ok: true, problems: [], warnings: [] })
    }
  })

  test('a service that shuts down is not ready and takes no job: 503', async () => {
    const service = await serviceOfTest()
    await service.engine.close({ timeoutMs: 0 })
    expect((await fetch(`${service.base}/readyz`)).status).toBe(503)
    const refused = await service.submit()
    expect([
      refused.status,
      refused.headers.has('retry-after'),
      ((await refused.json()) as { code: string }).code,
    ]).toEqual([503, true, 'SHUTTING_DOWN'])
  })

  test('an unreachable store is 503 with Retry-After on each route that needs it, and a logged error', async () => {
    let away = false
    const jobs = withFaults(memoryJobs(), () =>
      away ? new StemworkError('STORE_UNAVAILABLE', 'postgres at db.internal is away', { retryable: true }) : undefined,
    )
    const { logger, lines } = recordingLogger()
    const service = await serviceOfTest({ stores: { jobs }, engine: { logger } })
    const id = await service.created()
    away = true
    for (const [path, init] of [
      ['/job', { method: 'POST', body: '{"workflow":"service/held","params":{}}' }],
      [`/job/${id}`, {}],
      [`/job/${id}/status`, {}],
      ['/job', {}],
      [`/job/${id}`, { method: 'DELETE' }],
    ] as const) {
      const answer = await service.api(path, init)
      const body = (await answer.json()) as { code: string; message: string }
      expect([answer.status, answer.headers.get('retry-after'), body.code]).toEqual([503, '10', 'STORE_UNAVAILABLE'])
      expect(body.message).not.toContain('db.internal')
    }
    expect(lines.filter(({ level, fields }) => level === 'error' && 'requestId' in fields)).toHaveLength(5)
    away = false
    expect((await service.api(`/job/${id}`)).status).toBe(200)
    service.release()
  })

  test('a store that cannot recover by itself is 500, without Retry-After', async () => {
    const broken = new StemworkError('STORE_UNAVAILABLE', 'The job database is damaged.')
    const jobs = withFaults(memoryJobs(), ({ method }) => (method === 'get' ? broken : undefined))
    const service = await serviceOfTest({ stores: { jobs } })
    const answer = await service.api(`/job/${randomUUID()}`)
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([500, null])
  })

  test('metrics are off unless turned on, and count requests by route and jobs by event', async () => {
    const off = await serviceOfTest()
    expect((await fetch(`${off.base}/metrics`)).status).toBe(404)

    const service = await serviceOfTest({ worker: false, http: { metrics: true } })
    await service.submit()
    await service.api('/job/00000000-0000-4000-8000-000000000000')
    const answer = await fetch(`${service.server.origin}/metrics`)
    expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4')
    const lines = (await answer.text()).split('\n')
    expect(lines).toContain('stemwork_jobs_queued 1')
    expect(lines).toContain('stemwork_job_events_total{event="job.created"} 1')
    expect(lines).toContain('stemwork_http_requests_total{operation="createJob",status="200"} 1')
    expect(lines).toContain('stemwork_http_requests_total{operation="getJob",status="404"} 1')
    expect(lines).toContain('stemwork_http_request_seconds_count{operation="createJob"} 1')
    for (const line of lines.filter((one) => one && !one.startsWith('#')))
      expect(line).toMatch(/^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$/)
  })

  test('an internal error is logged with the request id and reveals nothing to the client', async () => {
    const logged: Record<string, unknown>[] = []
    const ignore = () => {}
    const logger = {
      debug: ignore,
      info: ignore,
      warn: ignore,
      error: (fields: Record<string, unknown>) => void logged.push(fields),
    }
    const service = await serviceOfTest({
      engine: { logger },
      http: { authenticate: () => Promise.reject(new Error('no database at 10.0.0.7')) },
    })
    const answer = await service.api('/application', { headers: { 'x-request-id': 'trace-1' } })
    const text = await answer.text()
    expect([answer.status, answer.headers.get('x-request-id')]).toEqual([500, 'trace-1'])
    expect(text).not.toContain('10.0.0.7')
    expect(logged).toEqual([
      expect.objectContaining({
        requestId: 'trace-1',
        err: expect.objectContaining({ message: 'no database at 10.0.0.7' }),
      }),
    ])
  })
})
