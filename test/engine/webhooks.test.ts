import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryApplications, memoryJobs } from '../../src/adapters/memory.js'
import { badInput } from '../../src/core/engine/errors.js'
import { silentLogger } from '../../src/core/engine/ports/logger.js'
import { newWebhookSecret } from '../../src/core/engine/webhooks/signature.js'
import { applicationSecret } from '../../src/core/engine/webhooks/signing-secrets.js'
import { gate, steppingClock, testEngine, textWorkflow, type TestEngine } from './harness.js'

interface Received {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

const loopback = { allow: ['127.0.0.1/32'], ports: [80, 443] }

/** A receiver on loopback that answers with the given statuses, then with 204. */
let server: Server
let url: string
let received: Received[]
let statuses: number[]
let onRequest: () => void
let answerHeaders: Record<string, string>

beforeEach(async () => {
  received = []
  statuses = []
  onRequest = () => {}
  answerHeaders = {}
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      })
      const status = statuses.shift() ?? 204
      response.writeHead(status, status === 302 ? { location: '/elsewhere' } : answerHeaders).end()
      onRequest()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  url = `http://127.0.0.1:${port}/hook`
  loopback.ports = [port]
})

afterEach(() => new Promise((resolve) => server.close(resolve)))

describe('webhooks', () => {
  const secret = newWebhookSecret()

  function withSecret(
    settings: Parameters<typeof testEngine>[1] = {},
    parts: Parameters<typeof testEngine>[2] = {},
  ): TestEngine {
    return testEngine(textWorkflow(), { fetch: loopback, webhooks: { secret }, ...settings }, parts)
  }

  async function delivered(jobs: TestEngine['parts']['jobs'], id: string) {
    return (await jobs.get(id))?.deliveries[0]
  }

  test('report the end of a job, signed so that an independent verifier accepts them', async () => {
    const { engine, until } = withSecret()
    const arrived = new Promise<void>((resolve) => (onRequest = resolve))
    const { job } = await engine.submit({
      app: 'app',
      workflow: 'test/text',
      params: {},
      webhook: { url },
      metadata: { order: '7' },
    })
    await engine.start()
    await until(job.id, 'SUCCEEDED')
    await arrived
    const { headers, body, method } = received[0]!
    expect(method).toBe('POST')
    const payload = new Webhook(applicationSecret(secret, 'app')).verify(body, headers as Record<string, string>)
    expect(payload).toMatchObject({
      type: 'job.succeeded',
      data: { id: job.id, status: 'SUCCEEDED', metadata: { order: '7' } },
    })
    // Neither the service's own secret nor one that another application's receiver knows is accepted.
    for (const other of [secret, applicationSecret(secret, 'other'), newWebhookSecret()])
      expect(() => new Webhook(other).verify(body, headers as Record<string, string>)).toThrow(
        'No matching signature found',
      )
    await engine.close()
  })

  test('wait without an attempt while their secrets cannot be read, which is not blamed on the receiver', async () => {
    const applications = memoryApplications()
    let isAway = false
    const getApplication: typeof applications.getApplication = async (id) => {
      if (isAway) throw new Error('the store is away')
      return await applications.getApplication(id)
    }
    const { engine, parts } = withSecret({}, { applications: { ...applications, getApplication } })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', webhook: { url } })
    isAway = true
    await engine.run(job.id)
    await engine.sendWebhooks()
    expect(await delivered(parts.jobs, job.id)).toMatchObject({ outcome: 'pending', attempts: 0 })
    expect(await engine.failingReceivers('app')).toEqual([])
    isAway = false
    expect(await engine.sendWebhooks()).toBe(1)
    expect(received).toHaveLength(1)
    await engine.close()
  })

  test.each(['job.succeeded', 'job.failed'] as const)(
    "are sent soon after %s, whatever the host's listeners do",
    async (event) => {
      const { engine, until } = testEngine(
        textWorkflow(() => {
          if (event === 'job.failed') throw badInput('decode_failed', 'no audio')
        }),
        { fetch: loopback, webhooks: { secret }, dispatch: { sweepIntervalMs: 3_600_000 } },
      )
      engine.on(event, () => {
        throw new Error('from a listener')
      })
      const arrived = new Promise<void>((resolve) => (onRequest = resolve))
      await engine.start()
      const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
      await until(job.id, 'SUCCEEDED', 'FAILED')
      await arrived
      expect(received.map(({ body }) => (JSON.parse(body) as { type: string }).type)).toEqual([event])
      await engine.close()
    },
  )

  test('are sent soon after a waiting job was canceled', async () => {
    const started = gate()
    const finish = gate()
    const { engine } = testEngine(
      textWorkflow(async () => {
        started.open()
        await finish.opened
      }),
      { fetch: loopback, webhooks: { secret }, dispatch: { sweepIntervalMs: 3_600_000 } },
    )
    engine.on('job.failed', () => {
      throw new Error('from a listener')
    })
    const input = { app: 'app', workflow: 'test/text', params: {} }
    await engine.start()
    await engine.submit(input)
    await started.opened
    const arrived = new Promise<void>((resolve) => (onRequest = resolve))
    const { job } = await engine.submit({ ...input, webhook: { url } })
    expect(await engine.cancel(job.id)).toMatchObject({ status: 'FAILED' })
    await arrived
    finish.open()
    await engine.close()
  })

  test('are tried again with the same id after a failure, and never again after a success', async () => {
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const { engine } = withSecret({}, { jobs })
    statuses = [500]
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
    await engine.run(job.id)
    await engine.sendWebhooks()
    expect(await delivered(jobs, job.id)).toMatchObject({ outcome: 'pending', attempts: 1, lastStatus: 500 })
    await engine.sendWebhooks()
    expect(received).toHaveLength(1)
    clock.advance(10_000)
    await engine.sendWebhooks()
    expect(await delivered(jobs, job.id)).toMatchObject({ outcome: 'delivered', attempts: 2, lastStatus: 204 })
    clock.advance(24 * 60 * 60 * 1000)
    await engine.sendWebhooks()
    expect(received).toHaveLength(2)
    expect(received[1]!.headers['webhook-id']).toBe(received[0]!.headers['webhook-id'])
    await engine.close()
  })

  test('that only have to wait for their receiver leave the event loop to others', async () => {
    const memory = memoryJobs()
    let [inPass, most] = [0, 0]
    const apply: typeof memory.apply = (id, change) => {
      if (change.kind === 'deferDelivery' && inPass++ === 0) setImmediate(() => (inPass = 0))
      most = Math.max(most, inPass)
      return memory.apply(id, change)
    }
    const { engine } = withSecret({}, { jobs: { ...memory, apply } })
    statuses = Array.from({ length: 10 }, () => 500)
    const input = { app: 'app', workflow: 'test/text', params: {}, webhook: { url } }
    for (let n = 0; n < 60; n++) await engine.run((await engine.submit(input)).job.id)
    while ((await engine.sendWebhooks()) > 0);
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(10)
  })

  test('are delivered by the status of the answer, however its body is encoded', async () => {
    answerHeaders = { 'content-encoding': 'br' }
    const { engine, parts } = withSecret()
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
    await engine.run(job.id)
    await engine.sendWebhooks()
    expect(await delivered(parts.jobs, job.id)).toMatchObject({ outcome: 'delivered', attempts: 1, lastStatus: 204 })
    await engine.close()
  })

  describe('to a receiver that takes the request and never answers', () => {
    let reached: ReturnType<typeof gate<void>>
    beforeEach(() => {
      reached = gate<void>()
      server.removeAllListeners('request')
      server.on('request', () => reached.open())
    })
    afterEach(() => server.closeAllConnections())

    test('hold their slot until the timeout and no longer', async () => {
      const jobs = memoryJobs()
      const { engine } = withSecret({ webhooks: { secret, timeoutMs: 100, concurrency: 1 } }, { jobs })
      const ids: string[] = []
      for (let n = 0; n < 2; n++) {
        const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
        await engine.run(job.id)
        ids.push(job.id)
      }
      // Both share one slot: the second is sent only once the first has released it.
      expect(await engine.sendWebhooks()).toBe(2)
      for (const id of ids)
        expect(await delivered(jobs, id)).toMatchObject({ outcome: 'pending', attempts: 1, lastStatus: null })
      await engine.close()
    })

    test('do not keep close() from returning', async () => {
      const jobs = memoryJobs()
      const { engine } = withSecret({ webhooks: { secret, timeoutMs: 3_600_000 } }, { jobs })
      const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
      await engine.run(job.id)
      const sending = engine.sendWebhooks()
      await reached.opened
      await engine.close()
      await sending
      expect(await delivered(jobs, job.id)).toMatchObject({ outcome: 'pending', attempts: 1 })
    })
  })

  test('are given up after seven attempts, and at once when the receiver answers 410', async () => {
    // Only the date is faked: the messages use real sockets.
    vi.useFakeTimers({ toFake: ['Date'] })
    const jobs = memoryJobs()
    const { engine } = withSecret({}, { jobs })
    statuses = [410, 500, 500, 500, 500, 500, 500, 500]
    const input = { app: 'app', workflow: 'test/text', params: {}, webhook: { url } }
    const gone = await engine.submit(input)
    await engine.run(gone.job.id)
    await engine.sendWebhooks()
    expect(await delivered(jobs, gone.job.id)).toMatchObject({ outcome: 'gone', attempts: 1 })

    const failing = await engine.submit(input)
    await engine.run(failing.job.id)
    let hours = 0
    while ((await delivered(jobs, failing.job.id))?.outcome === 'pending' && hours < 48) {
      await engine.sendWebhooks()
      vi.setSystemTime(Date.now() + (60 * 60 * 1000) / 12)
      hours += 1 / 12
    }
    expect(await delivered(jobs, failing.job.id)).toMatchObject({ outcome: 'given_up', attempts: 7 })
    expect(hours).toBeGreaterThan(17)
    expect(hours).toBeLessThan(22)
    vi.useRealTimers()
    await engine.close()
  })

  test('do not follow redirects', async () => {
    const { engine, parts } = withSecret()
    statuses = [302]
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
    await engine.run(job.id)
    await engine.sendWebhooks()
    expect(received.map((request) => request.url)).toEqual(['/hook'])
    expect(await delivered(parts.jobs, job.id)).toMatchObject({ outcome: 'pending' })
    await engine.close()
  })

  test('of two processes that find a message due, one sends it', async () => {
    const jobs = memoryJobs()
    const first = withSecret({}, { jobs })
    const second = withSecret({}, { jobs })
    const { job } = await first.engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
    await first.engine.run(job.id)
    await Promise.all([first.engine.sendWebhooks(), second.engine.sendWebhooks()])
    expect(received).toHaveLength(1)
    await first.engine.close()
    await second.engine.close()
  })

  test('go to the address of the application, signed with its own secret, for the events it asked for', async () => {
    const applications = memoryApplications()
    const own = newWebhookSecret()
    await applications.putApplication({
      id: 'app',
      name: 'App',
      createdAt: 0,
      webhook: { url, events: ['job.failed'] },
      webhookSecrets: [{ secret: own, expiresAt: null }],
    })
    const { engine } = testEngine(
      textWorkflow(() => Promise.reject(new Error('no'))),
      { fetch: loopback, dispatch: { maxAttempts: 1 } },
      { applications },
    )
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {} })
    await engine.run(job.id)
    await engine.sendWebhooks()
    expect(new Webhook(own).verify(received[0]!.body, received[0]!.headers as Record<string, string>)).toMatchObject({
      type: 'job.failed',
    })
    await engine.close()
  })

  test('are refused at submit if nothing could sign them', async () => {
    const { engine } = testEngine(textWorkflow())
    await expect(
      engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } }),
    ).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
  })

  test('never go to an address that the policy does not allow', async () => {
    const logger = { ...silentLogger, warn: vi.fn() }
    const { engine, parts } = withSecret({ fetch: {}, logger })
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', params: {}, webhook: { url } })
    await engine.run(job.id)
    await engine.sendWebhooks()
    expect(received).toEqual([])
    expect(await delivered(parts.jobs, job.id)).toMatchObject({ outcome: 'pending', lastStatus: null })
    // The operator reads the cause, not the advice for clients.
    expect(logger.warn.mock.calls[0]?.[0]).toMatchObject({
      cause: expect.stringMatching(/^Error: 127.0.0.1 is not a public address/) as string,
    })
    await engine.close()
  })
})

describe('copyResultsTo', () => {
  const target = () => url.replace('/hook', '/bucket/text.txt?signature=1')

  test('sends the output with one PUT and a Content-Length, and keeps no copy', async () => {
    const { engine, parts } = testEngine(textWorkflow(), { fetch: loopback })
    const { job } = await engine.submit({
      app: 'app',
      workflow: 'test/text',
      params: {},
      copyResultsTo: { text: target() },
    })
    const done = await engine.run(job.id)
    expect(done).toMatchObject({ status: 'SUCCEEDED', outputs: { text: { copied: true } } })
    expect(received).toMatchObject([{ method: 'PUT', url: '/bucket/text.txt?signature=1', body: `text of ${job.id}` }])
    expect(received[0]!.headers).toMatchObject({ 'content-length': String(received[0]!.body.length) })
    expect(received[0]!.headers['transfer-encoding']).toBeUndefined()
    for await (const blob of parts.blobs.list('results/')) expect(blob).toBeUndefined()
  })

  test('is tried again when the storage fails, without running the job again', async () => {
    let runs = 0
    const { engine } = testEngine(
      textWorkflow(() => void runs++),
      { fetch: loopback },
    )
    statuses = [503]
    const { job } = await engine.submit({
      app: 'app',
      workflow: 'test/text',
      params: {},
      copyResultsTo: { text: target() },
    })
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED' })
    expect({ runs, requests: received.length }).toEqual({ runs: 1, requests: 2 })
  })

  test('fails the job with copy_failed when the storage refuses', async () => {
    const { engine } = testEngine(textWorkflow(), { fetch: loopback })
    statuses = [403]
    const { job } = await engine.submit({
      app: 'app',
      workflow: 'test/text',
      params: {},
      copyResultsTo: { text: target() },
    })
    const failed = await engine.run(job.id)
    expect(failed).toMatchObject({ status: 'FAILED', error: { code: 'BAD_INPUT', reason: 'copy_failed' } })
    expect(failed?.error?.message).toContain('403')
    expect(failed?.error?.message).not.toContain('signature=1')
  })

  test('names outputs that the workflow does not have', async () => {
    const { engine } = testEngine(textWorkflow())
    await expect(
      engine.submit({ app: 'app', workflow: 'test/text', params: {}, copyResultsTo: { drums: target() } }),
    ).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
      details: { issues: [{ path: 'copyResultsTo.drums' }] },
    })
  })
})
