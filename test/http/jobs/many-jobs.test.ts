import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createClient } from '../../../src/client/client.js'
import { pollJob, serviceOfTest } from '../harness.js'
import { stemsId } from '../light-workflows.js'

const held = { workflow: 'service/held', params: {} }

test('a batch is created whole and read by name; its jobs are canceled, run again and deleted together', async () => {
  const service = await serviceOfTest({ worker: false })
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
  const { name, ids } = await client.createBatch({ name: 'Album / 1', jobs: [held, held, held] })
  expect([name, ids.length]).toEqual(['Album / 1', 3])
  expect(await client.getBatch(name)).toMatchObject({ total: 3, counts: { QUEUED: 3 }, progress: 0, endedAt: null })
  await expect(client.getBatch('none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await client.createJob(held)
  const first = await client.cancelJobs({ batchName: name, limit: 2 })
  expect(first).toMatchObject({ done: 2, refused: [], next: expect.any(String) })
  expect(await client.cancelJobs({ batchName: name, limit: 2, after: first.next ?? '' })).toMatchObject({
    done: 1,
    next: null,
  })
  expect(await client.getBatch(name)).toMatchObject({ counts: { FAILED: 3 }, progress: 1, endedAt: expect.any(String) })
  expect(await client.retryJobs({ batchName: name })).toMatchObject({ done: 3 })
  const stranger = createClient({ baseUrl: service.base, apiKey: (await service.addApplication('Other')).key })
  expect(await stranger.deleteJobs({ all: true })).toMatchObject({ done: 0 })
  for (const search of [' ', '\u0000', '\u200b'])
    await expect(client.deleteJobs({ search, status: ['FAILED', 'QUEUED'] })).rejects.toMatchObject({
      code: 'BAD_INPUT',
      errors: [{ path: 'search', message: 'must have a word; leave it out to mean jobs of any name' }],
    })
  expect(await client.deleteJobs({ all: true })).toMatchObject({ done: 4 })
  const refused = await service.api('/job/delete', { method: 'POST', body: '{}' })
  expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([400, 'BAD_INPUT'])
})

test('the errors of a batch are given for each job, and none is created', async () => {
  const service = await serviceOfTest({ worker: false })
  const jobs = [held, { ...held, priority: 3 }, { workflow: 'service/held', params: { x: 'y'.repeat(20_000) } }]
  const create = async (some: unknown[]) => {
    const answer = await service.api('/batch', { method: 'POST', body: JSON.stringify({ jobs: some }) })
    return [answer.status, ((await answer.json()) as { errors?: { path: string }[] }).errors?.map(({ path }) => path)]
  }
  expect(await create(jobs)).toEqual([400, ['jobs.1.priority']])
  expect(await create([held, jobs[2]])).toEqual([400, ['jobs.1.params']])
  expect(await create([held, { ...held, workflow: 'service/none' }])).toEqual([400, ['jobs.1.workflow']])
  const body = JSON.stringify({ jobs: [{ ...held, workflow: 'service/none' }] })
  const answer = await service.api('/batch', { method: 'POST', body })
  expect(((await answer.json()) as { message: string }).message).toMatch(/Known workflows: [^.]+\.$/)
  expect(await service.engine.count({})).toBe(0)
})

test('a full batch is taken whose jobs have metadata and settings', async () => {
  const service = await serviceOfTest({ worker: false })
  const metadata = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`field${index}`, 'x']))
  const job = { ...held, name: 'A song', metadata }
  const full = { jobs: Array.from({ length: 500 }, () => job) }
  const answer = await service.api('/batch', { method: 'POST', body: JSON.stringify(full) })
  expect([answer.status, ((await answer.json()) as { ids: string[] }).ids?.length]).toEqual([200, 500])
})

test('a used-up quota answers 429 with which one, how much, and when to come back', async () => {
  const service = await serviceOfTest({ worker: false, engine: { quota: { jobs: 1 } } })
  expect((await service.submit()).status).toBe(200)
  const refused = await service.submit()
  expect(refused.status).toBe(429)
  const seconds = Number(refused.headers.get('retry-after'))
  expect(seconds).toBeGreaterThan(0)
  expect(seconds).toBeLessThanOrEqual(86_400)
  expect(await refused.json()).toMatchObject({
    code: 'QUOTA_EXCEEDED',
    reason: 'jobs',
    message: expect.stringMatching(/1 job a day and has used 1\. .*T00:00:00\.000Z/),
  })
})

test('metrics count waiting and running jobs by workflow and pool, and a waiting job says why it waits', async () => {
  const service = await serviceOfTest({ worker: false, http: { metrics: true } })
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
  const { id } = await client.createJob(held)
  expect((await client.getJob(id)).waiting).toMatchObject({ reason: 'no_worker' })
  await service.engine.start()
  service.release()
  await client.waitForJob(id)
  const metrics = await (await fetch(`${service.base}/metrics`)).text()
  for (const line of [
    'stemwork_workflow_attempts_total{workflow="service/held"} 1',
    'stemwork_workflow_run_seconds_count{workflow="service/held",status="SUCCEEDED"} 1',
    'stemwork_workflow_wait_seconds_bucket{workflow="service/held",le="+Inf"} 1',
    '# TYPE stemwork_pool_queued gauge',
    '# TYPE stemwork_pool_backlog_seconds gauge',
  ])
    expect(metrics).toContain(line)
  const other = await serviceOfTest({ worker: false, http: { metrics: true } })
  await createClient({ baseUrl: other.base, apiKey: other.app.key }).createJob(held)
  expect(await (await fetch(`${other.base}/metrics`)).text()).toContain(
    'stemwork_pool_queued{workflow="service/held",pool=""} 1',
  )
})

test('metrics have one series for all numbers of a class with which the servers of inputs answer', async () => {
  const origin = createServer(({ url }, response) => response.writeHead(Number(url?.slice(1))).end())
  await new Promise<void>((resolve) => void origin.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void origin.close())
  const { port } = origin.address() as AddressInfo
  const service = await serviceOfTest({ http: { metrics: true }, engine: { fetch: { allowPrivate: true } } })
  for (const status of [404, 410]) {
    const id = await service.created({ workflow: stemsId, params: { inputUrl: `http://127.0.0.1:${port}/${status}` } })
    expect((await pollJob(service, id)).error).toMatchObject({ reason: `download_http_${status}` })
  }
  expect(await (await fetch(`${service.base}/metrics`)).text()).toContain(
    'stemwork_workflow_failures_total{workflow="' + stemsId + '",code="BAD_INPUT",reason="download_http_4xx"} 2',
  )
})

test('a batch counts as several new jobs against the rate, whether it is created or refused', async () => {
  const create = { requests: 40, perSeconds: 3600 }
  const service = await serviceOfTest({ worker: false, http: { rateLimits: { create } } })
  const statusOf = async (path: string, body: unknown, key?: string) =>
    (await service.api(path, { method: 'POST', body: JSON.stringify(body), key })).status
  const jobs = Array.from({ length: 500 }, () => held)
  expect(await statusOf('/batch', { jobs })).toBe(200)
  expect(await statusOf('/job', held)).toBe(429)
  const { key } = await service.addApplication('Other')
  expect(await statusOf('/batch', { jobs: jobs.map(() => ({ ...held, workflow: 'none' })) }, key)).toBe(400)
  expect(await statusOf('/job', held, key)).toBe(429)
})

test('batches of an application are created one at a time', async () => {
  const service = await serviceOfTest({ worker: false })
  const submit = service.engine.submitBatch.bind(service.engine)
  const running = { now: 0, most: 0 }
  vi.spyOn(service.engine, 'submitBatch').mockImplementation(async (...given) => {
    running.most = Math.max(running.most, ++running.now)
    await delay(20)
    return submit(...given).finally(() => running.now--)
  })
  const send = async (name: string) =>
    (await service.api('/batch', { method: 'POST', body: JSON.stringify({ name, jobs: [held] }) })).status
  expect(await Promise.all(['a', 'b', 'c', 'd'].map(send))).toEqual([200, 200, 200, 200])
  expect(running.most).toBe(1)
})
