import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { createEngine } from '../../../src/create-engine.js'
import { newWebhookSecret } from '../../../src/core/engine/webhooks/signature.js'
import type { SubmitInput } from '../../../src/core/engine/intake/submission.js'
import { stemsWorkflow } from '../../../src/core/workflows/separation/stems-workflow.js'
import { createApplication, issueKey } from '../../../src/http/index.js'
import { listener } from '../../../src/http/mounts/node.js'
import { type JobJson, pollJob, type Service, serviceOfTest } from '../harness.js'
import { rawRequest } from '../mounts/raw-request.js'

const stems = 'service/stems-vocals-accompaniment'
const patient = { timeout: 15_000 }
const seconds = 1000
const hours = 3600 * seconds

interface Received {
  request: IncomingMessage
  body: string
}

/** A client's server on loopback, and the policy that lets the service reach it. */
async function startReceiver() {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ request, body: Buffer.concat(chunks).toString() })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => (server.closeAllConnections(), new Promise((resolve) => server.close(() => resolve()))))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, received, policy: { allow: ['127.0.0.1/32'], ports: [port] } }
}

describe('the limits of a new job', () => {
  const longUrl = (length: number) => 'https://example.com/'.padEnd(length, 'x')
  const longCopy = (name: string) => [name, longUrl(8000)]
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`key ${index}`, 'x']))

  test.each<[string, Record<string, unknown>, number]>([
    ['a name of 255 characters', { name: 'n'.repeat(255) }, 200],
    ['a name of 256 characters', { name: 'n'.repeat(256) }, 400],
    ['a batch name of 256 characters', { batchName: 'n'.repeat(256) }, 400],
    ['50 pairs of metadata', { metadata: pairs(50) }, 200],
    ['51 pairs of metadata', { metadata: pairs(51) }, 400],
    ['a metadata key of 40 characters, a value of 500', { metadata: { ['k'.repeat(40)]: 'v'.repeat(500) } }, 200],
    ['a metadata key of 41 characters', { metadata: { ['k'.repeat(41)]: 'v' } }, 400],
    ['a metadata value of 501 characters', { metadata: { key: 'v'.repeat(501) } }, 400],
    ['params of 16 KiB', { params: { note: 'x'.repeat(16 * 1024 - '{"note":""}'.length) } }, 200],
    ['params of a byte more', { params: { note: 'x'.repeat(16 * 1024 - '{"note":""}'.length + 1) } }, 400],
    ['a webhook URL of 8,193 characters', { webhook: { url: longUrl(8193) } }, 400],
    ['33 copies', { copyResultsTo: pairs(33) }, 400],
    ['copies of more than 32 KiB', { copyResultsTo: Object.fromEntries('abcde'.split('').map(longCopy)) }, 400],
    ['an output that the workflow does not have', { copyResultsTo: { drums: 'https://bucket.example/drums' } }, 400],
  ])('%s', async (_what, body, status) => {
    const service = await serviceOfTest({ worker: false })
    const answer = await service.submit(body)
    expect(answer.status).toBe(status)
    const { errors } = (await answer.json()) as { errors?: { path: string }[] }
    if (status === 400) expect(Object.keys(body)).toContain(errors?.[0]!.path.split('.')[0])
  })

  test('256 kB of JSON, to the byte', async () => {
    const service = await serviceOfTest({ worker: false })
    const send = (bytes: number) => {
      const body = JSON.stringify({ workflow: 'service/held', params: {} })
      return service.api('/job', { method: 'POST', body: body.padEnd(bytes, ' ') })
    }
    expect((await send(256 * 1024)).status).toBe(200)
    expect((await send(256 * 1024 + 1)).status).toBe(413)
  })
})

describe('a body with thousands of wrong values', () => {
  const wrong = Array.from({ length: 2500 }, (_, index) => index)

  test.each<[string, Record<string, unknown>, string]>([
    ['metadata', { metadata: Object.fromEntries(wrong.entries()) }, 'at most 50 keys'],
    ['copyResultsTo', { copyResultsTo: Object.fromEntries(wrong.entries()) }, 'at most 32 keys'],
    ['webhook.events', { webhook: { url: 'https://example.com', events: wrong } }, 'at most 20 entries'],
  ])('is counted before it is parsed: %s', async (path, body, message) => {
    const service = await serviceOfTest({ worker: false })
    const answer = await service.submit(body)
    const text = await answer.text()
    expect([answer.status, text.length < 1000]).toEqual([400, true])
    // One issue: the values themselves are not checked.
    expect(JSON.parse(text)).toMatchObject({ errors: [{ path, message: expect.stringContaining(message) }] })
  })

  test.each<[string, string]>([
    ['members', JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1])))],
    ['values', JSON.stringify(Array.from({ length: 20_000 }, () => 1))],
    ['values', '['.repeat(20_000)],
    ['values', '{'.repeat(20_000)],
  ])('is not even parsed if it has more %s than any valid one', async (what, text) => {
    const service = await serviceOfTest({ worker: false })
    // Cut off in the middle, the body is not JSON: a parser would have reported that.
    const answer = await service.api('/job', { method: 'POST', body: `{"params":${text.slice(0, -10)}` })
    expect([answer.status, await answer.json()]).toEqual([
      400,
      expect.objectContaining({
        message: expect.stringMatching(new RegExp(`\\d+ ${what}.*more than any valid body has`)),
      }),
    ])
  })

  test('is parsed if these are only characters in a string', async () => {
    const service = await serviceOfTest({ worker: false })
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`k${index}`, ':,"\\'.repeat(125)]))
    expect((await service.submit({ metadata, params: { note: ',:'.repeat(8000) } })).status).toBe(200)
  })

  test('is answered with at most 20 issues, in bounded text', async () => {
    const service = await serviceOfTest({ worker: false })
    const keys = Object.fromEntries(wrong.slice(0, 50).map((index) => ['k'.repeat(index + 2), 'x'.repeat(501)]))
    const many = await service.submit({ metadata: keys })
    const { message, errors } = (await many.json()) as { message: string; errors: unknown[] }
    expect([many.status, errors.length]).toEqual([400, 20])
    expect(message).toMatch(/and \d+ more\.$/)
  })
})

test('params with a thousand wrong keys are refused in bounded text', async () => {
  const engine = createEngine({ workflows: [stemsWorkflow()] })
  const params = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`param ${index}`, index]))
  const input: SubmitInput = { app: 'app', workflow: stems, params }
  const refused = await engine.submit(input).catch((error: Error) => error)
  expect(refused).toMatchObject({ code: 'INVALID_PARAMS' })
  expect((refused as Error).message.length).toBeLessThan(1000)
  await engine.close()
})

describe('a list of large jobs', () => {
  test('is refused with the size that fits, and read through by that size', async () => {
    const service = await serviceOfTest({ worker: false, http: { limits: { listBytes: 100 * 1024 } } })
    const params = { note: 'x'.repeat(15_000) }
    const ids: string[] = []
    for (let index = 0; index < 15; index++) ids.unshift(await service.created({ params }))
    const refused = await service.api('/job')
    const { message } = (await refused.json()) as { message: string }
    expect(refused.status).toBe(400)
    const size = Number(/size=(\d+)/.exec(message)?.[1])
    expect(size).toBe(6)
    const seen: string[] = []
    let next: string | undefined = `${service.base}/job?size=${size}`
    while (next !== undefined) {
      const answer: Response = await fetch(next, { headers: { authorization: service.app.key } })
      const text = await answer.text()
      expect(text.length).toBeLessThanOrEqual(100 * 1024)
      seen.push(...(JSON.parse(text) as JobJson[]).map(({ id }) => id))
      next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
    }
    expect(seen).toEqual(ids)
  })

  test('with one row is never refused', async () => {
    const service = await serviceOfTest({ worker: false, http: { limits: { listBytes: 100 } } })
    await service.submit()
    expect(await (await service.api('/job?size=1')).json()).toHaveLength(1)
  })
})

describe('without options', () => {
  test('files, audio, queue and retention have the limits of the contract', async () => {
    const { limits, retention } = (await serviceOfTest({ worker: false })).engine.options
    expect(limits).toMatchObject({ maxFileBytes: 1024 ** 3, maxAudioSeconds: 3600, maxQueuedJobs: 1000 })
    expect(retention).toMatchObject({ resultsMs: 72 * hours, unusedUploadsMs: 24 * hours, jobsMs: 30 * 24 * hours })
  })

  test('an application has 10 creates and 60 other requests a second, and the answers say so', async () => {
    const service = await serviceOfTest({ worker: false, http: { rateLimits: undefined } })
    expect((await service.submit()).headers.get('ratelimit-policy')).toBe('"create";q=10;w=1')
    expect((await service.api('/application')).headers.get('ratelimit-policy')).toBe('"other";q=60;w=1')
  })

  test('a ticket lives an hour, its input a day, a result link an hour', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
    onTestFinished(() => void vi.useRealTimers())
    const service = await serviceOfTest()
    const left = (url: string) => Number(new URL(url).searchParams.get('expires')) * seconds - Date.now()
    const ticket = (await (await service.api('/upload')).json()) as { uploadUrl: string; downloadUrl: string }
    service.release()
    const id = await service.created()
    const links = [ticket.uploadUrl, ticket.downloadUrl, (await pollJob(service, id)).result?.report ?? '']
    for (const [index, lifetime] of [1, 24, 1].entries()) {
      expect(left(links[index]!)).toBe(lifetime * hours)
    }
  })

  test('results are kept for 72 hours from the end of the job', async () => {
    const service = await serviceOfTest()
    service.release()
    const id = await service.created()
    const { completedAt, expiresAt } = await pollJob(service, id)
    expect(Date.parse(expiresAt ?? '') - Date.parse(completedAt ?? '')).toBe(72 * hours)
  })
})

describe('a deleted job', () => {
  test('leaves nothing: its run is aborted, a late result discarded, its results and upload removed', async () => {
    const blobs = memoryBlobs()
    const service = await serviceOfTest({ blobs })
    const count = async () => {
      let files = 0
      for (const prefix of ['results/', 'uploads/'])
        // The mark of a used ticket stays until every ticket of that age has expired.
        for await (const { key } of blobs.list(prefix)) if (!key.endsWith('.used')) files++
      return files
    }
    const running = await service.created()
    await pollJob(service, running, (job) => job.status === 'STARTED')
    const body = { workflow: stems, params: { inputUrl: await service.uploaded(Buffer.from('song')) } }
    const done = await service.created(body)
    await pollJob(service, done)
    const unread = await serviceOfTest({ blobs, worker: false })
    const waiting = { workflow: stems, params: { inputUrl: await unread.uploaded(Buffer.from('song')) } }
    const queued = await unread.created(waiting)
    expect(await count()).toBeGreaterThan(0)

    for (const [owner, id] of [
      [service, running],
      [service, done],
      [unread, queued],
    ] as const) {
      expect(await (await owner.api(`/job/${id}`, { method: 'DELETE' })).json()).toEqual({ id })
      for (const path of ['', '/status']) expect((await owner.api(`/job/${id}${path}`)).status).toBe(404)
      expect((await owner.api(`/job/${id}`, { method: 'DELETE' })).status).toBe(404)
    }
    service.release()
    await expect.poll(count, patient).toBe(0)
    expect((await service.api(`/job/${running}`)).status).toBe(404)
  })
})

test('results go to the client\'s storage with one PUT and a length, and are shown as "[custom storage]"', async () => {
  const { url, received, policy } = await startReceiver()
  const service = await serviceOfTest({ engine: { fetch: policy } })
  const inputUrl = await service.uploaded(Buffer.from('song'))
  const copyResultsTo = { vocals: `${url}/vocals.wav?signature=1` }
  const id = await service.created({ workflow: stems, params: { inputUrl }, copyResultsTo })
  const { result } = await pollJob(service, id)
  expect(result).toEqual({ vocals: '[custom storage]', accompaniments: expect.stringMatching(/accompaniments\.wav\?/) })
  expect(
    received.map(({ request, body }) => [request.method, request.url, request.headers['content-length'], body]),
  ).toEqual([['PUT', '/vocals.wav?signature=1', '4', 'song']])
})

test('a webhook that a job names is sent with the signature of its application and a thin payload', async () => {
  const { url, received, policy } = await startReceiver()
  const service = await serviceOfTest({ engine: { fetch: policy } })
  const secret = newWebhookSecret()
  const { id: app } = await createApplication(service.engine.applications, {
    name: 'Hooked',
    webhook: { url: `${url}/unused`, secret, events: null },
  })
  const { key } = await issueKey(service.engine.applications, app)
  service.release()
  const webhook = { url: `${url}/hook`, events: ['job.succeeded'] }
  const id = await service.created({ webhook, metadata: { order: '7' } }, { key })
  await expect.poll(() => received.length, patient).toBe(1)
  const { request, body } = received[0]!
  expect([request.method, request.url]).toEqual(['POST', '/hook'])
  expect(new Webhook(secret).verify(body, request.headers as Record<string, string>)).toMatchObject({
    type: 'job.succeeded',
    data: { id, status: 'SUCCEEDED', metadata: { order: '7' } },
  })
  expect(body).not.toContain('signature')
})

test('a JSON answer is not cached and not sniffed as another type, whether it succeeds or not', async () => {
  const service = await serviceOfTest()
  const id = await service.created()
  const paths = ['/upload', '/job', `/job/${id}`, `/job/${id}/status`, '/application', '/workflow', '/healthz', '/none']
  for (const path of paths) {
    const { headers } = await service.api(path)
    expect([path, headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual([
      path,
      'no-store',
      'nosniff',
    ])
  }
})

describe('on a raw connection', () => {
  const ask = (service: Service, target: string, headers: string[]) =>
    rawRequest(service.base, [
      [`GET ${target} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', ...headers, '', ''].join('\r\n'),
    ])

  test('an Authorization header that is sent twice is not accepted, whatever the key', async () => {
    const service = await serviceOfTest()
    const header = `Authorization: ${service.app.key}`
    for (const headers of [[header], [header, header], [header], [header, 'authorization: x']]) {
      expect((await ask(service, '/v1/application', headers)).status).toBe(headers.length === 1 ? 200 : 401)
    }
  })

  test.each([
    ['/v1/application/', 200],
    // A URL would make other paths of these, which a guard in front has not seen.
    ['/v1/x/../application', 400],
    ['/v1/%2e/application', 400],
    ['/v1/application/../..//v1/application', 400],
    ['http://other.example/v1/application', 200],
    ['/v1/application?page=%zz', 200],
    ['/v1//application', 404],
    ['/v1/job/x/status/y', 404],
    ['*', 404],
  ])('the target %s is answered %i', async (target, status) => {
    const service = await serviceOfTest()
    expect((await ask(service, target, [`Authorization: ${service.app.key}`])).status).toBe(status)
  })
})

test('a handler that wraps ours gets web requests and may change the response', async () => {
  const service = await serviceOfTest()
  const seen: string[] = []
  const around = listener(async (request, context) => {
    seen.push(`${request.method} ${new URL(request.url).pathname} ${request.headers.get('x-trace')}`)
    const answer = await service.handler(request, context)
    answer.headers.set('x-host', 'yes')
    return answer
  })
  const server = createServer((request, response) => void around(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => (server.closeAllConnections(), void server.close()))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const headers = { authorization: service.app.key, 'x-trace': 'abc' }

  const ticket = await fetch(`${origin}/v1/upload`, { headers })
  expect([ticket.status, ticket.headers.get('x-host')]).toEqual([200, 'yes'])
  const { uploadUrl, downloadUrl } = (await ticket.json()) as { uploadUrl: string; downloadUrl: string }
  expect((await fetch(uploadUrl, { method: 'PUT', body: 'song' })).status).toBe(200)
  expect(await (await fetch(downloadUrl)).text()).toBe('song')
  expect((await fetch(downloadUrl, { method: 'HEAD' })).headers.get('content-length')).toBe('4')
  const listed = (await (await fetch(`${origin}/v1/job`, { headers })).json()) as JobJson[]
  expect(listed).toEqual([])
  expect(seen[0]).toBe('GET /v1/upload abc')
  expect(seen).toHaveLength(5)
})
