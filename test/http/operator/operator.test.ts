import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { sampleError } from '../../../src/contract/job-samples.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import type { BulkFacts, JobFacts, JobPage, Overview } from '../../../src/http/operator/answers.js'
import { endedJobs } from '../jobs/ended-jobs.js'
import { type Service, serviceOfTest, startService } from '../harness.js'

const operatorKey = 'the-key-of-the-operator'
const failing = defineWorkflow({
  id: 'service/failing',
  name: 'Failing',
  description: 'Fails, after it was tried again.',
  params: z.object({}),
  inputs: [],
  outputs: {},
  stages: [
    {
      name: 'fail',
      async run() {
        const cause = new Error('no disk at /mnt/secret')
        throw new StemworkError('INTERNAL_ERROR', 'The disk is away.', {
          reason: 'worker_lost',
          retryable: true,
          cause,
        })
      },
    },
  ],
})

const distant = defineWorkflow({
  id: 'service/distant',
  name: 'Distant',
  description: 'Needs what no worker here has.',
  params: z.object({}),
  inputs: [],
  outputs: {},
  stages: [{ name: 'never', async run() {} }],
  needs: ['gpu'],
})

describe("the operator's interface", () => {
  let service: Service
  let other: { id: string; key: string }
  beforeAll(async () => {
    service = await startService({
      http: { operator: { key: operatorKey } },
      engine: { dispatch: { maxAttempts: 2, retryDelayMs: 1, sweepIntervalMs: 50 }, owner: 'worker-1' },
      workflows: [failing, distant],
    })
    other = await service.addApplication('Another')
  })
  afterAll(() => service.close())

  async function ask<Answer>(path: string, body?: object, key = operatorKey): Promise<Answer> {
    const response = await fetch(`${service.base}/operator/api/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: key, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    })
    expect(response.status).toBe(200)
    return (await response.json()) as Answer
  }

  const submit = (workflow: string, name: string, key?: string) => service.created({ workflow, name }, { key })

  async function until(id: string, holds: (job: JobFacts) => boolean): Promise<JobFacts> {
    let found: JobFacts | undefined
    await expect
      .poll(async () => holds((found = await ask<JobFacts>(`job/${id}`))), { timeout: 30_000, interval: 20 })
      .toBe(true)
    return found as JobFacts
  }

  test('does not exist unless the host turns it on', async () => {
    const plain = await serviceOfTest()
    for (const path of ['/operator', '/operator/api/overview', '/operator/operator.js'])
      expect((await fetch(plain.base + path, { headers: { authorization: operatorKey } })).status).toBe(404)
  })

  test.each([
    ['no key', ''],
    ['a wrong key', 'wrong-key-of-the-operator'],
    ['the key of an application', undefined],
  ])('refuses %s, for every call', async (_, key) => {
    const headers = { authorization: key ?? service.app.key, 'content-type': 'application/json' }
    const id = await submit('service/held', 'kept')
    for (const [method, path, body] of [
      ['GET', 'overview'],
      ['GET', 'job'],
      ['GET', `job/${id}`],
      ['POST', `job/${id}/cancel`],
      ['POST', `job/${id}/retry`],
      ['POST', `job/${id}/delete`],
      ['POST', 'jobs/delete', { status: 'QUEUED' }],
      ['GET', `application/${other.id}/limits`],
      ['POST', `application/${other.id}/limits`, { jobs: 0 }],
      ['POST', 'rule', { target: { kind: 'deployment' }, change: { state: 'paused' } }],
      ['POST', 'worker', { name: 'any', state: 'cordoned' }],
    ] as const) {
      const answer = await fetch(`${service.base}/operator/api/${path}`, {
        method,
        headers,
        body: body && JSON.stringify(body),
      })
      expect([path, answer.status]).toEqual([path, 401])
    }
    expect(await service.engine.schedulingRules()).toEqual([])
    expect((await service.engine.get(id))?.status).not.toBe('FAILED')
    await ask(`job/${id}/cancel`, {})
  })

  test('opens nothing else', async () => {
    expect((await service.api('/job', { key: operatorKey })).status).toBe(401)
  })

  test('counts wrong keys like those of applications', async () => {
    const strict = await serviceOfTest({
      http: { operator: { key: operatorKey }, rateLimits: { wrongKeys: { requests: 2, perSeconds: 3600 } } },
    })
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) {
      const answer = await fetch(`${strict.base}/operator/api/overview`, { headers: { authorization: `wrong ${i}` } })
      statuses.push(answer.status)
    }
    expect(statuses).toEqual([401, 401, 429, 429])
  })

  test('shows what waits, runs and fails in the whole store', async () => {
    const running = await submit('service/held', 'running', other.key)
    await until(running, ({ status, stage }) => status === 'STARTED' && stage === 'hold')
    const failed = await submit('service/failing', 'failed')
    await until(failed, ({ status }) => status === 'FAILED')
    await service.engine.schedule({ kind: 'workflow', id: 'service/held' }, { state: 'paused', maxRunning: 3 })
    const waiting = await submit('service/held', 'waiting')

    const seen = await ask<Overview>('overview')
    const held = seen.queues.find(({ workflow }) => workflow === 'service/held')
    expect(held).toMatchObject({ name: 'Held', needs: [], queued: 1, running: 1, isMore: false, workers: 1, slots: 4 })
    expect(held?.longestWaitMs).toBeGreaterThanOrEqual(0)
    expect(seen.workers).toMatchObject([
      {
        name: 'worker-1',
        offers: { slots: 4, labels: [] },
        jobs: [{ id: running, workflow: 'service/held', stage: 'hold' }],
      },
    ])
    expect(seen.failures.find(({ reason }) => reason === 'worker_lost')).toMatchObject({
      jobs: 1,
      last: { id: failed },
    })
    expect(seen.rates).toHaveLength(12)
    expect(seen.rates.at(-1)?.failed).toBeGreaterThanOrEqual(1)
    expect(seen.rules).toEqual([{ kind: 'workflow', id: 'service/held', state: 'paused', maxRunning: 3 }])
    expect(seen.applications.map(({ name }) => name).sort()).toEqual(['Another', 'Test application'])

    // An operator sees a change of their own at once, although others see what was read a moment ago.
    const opened = await ask<Overview>('rule', {
      target: { kind: 'workflow', id: 'service/held' },
      change: { state: 'open', maxRunning: null },
    })
    expect(opened.rules).toEqual([])
    await until(waiting, ({ status }) => status === 'STARTED')
    for (const id of [waiting, running]) await ask(`job/${id}/cancel`, {})
    await until(running, ({ status, error }) => status === 'FAILED' && error?.code === 'CANCELED')
  })

  test('counts ended jobs, with their reasons and times, however many there are', async () => {
    const jobs = memoryJobs()
    const many = await serviceOfTest({ worker: false, http: { operator: { key: operatorKey } }, stores: { jobs } })
    const made = await endedJobs(jobs, 702, { fields: { workflow: 'service/held' } })
    const broken = await endedJobs(jobs, 601, { isFailed: true })
    // A deleted job still counts as ended.
    const [deleted] = made
    await jobs.apply(deleted?.id ?? '', { kind: 'delete' })
    const answer = await fetch(`${many.base}/operator/api/overview`, { headers: { authorization: operatorKey } })
    const { rates, failures, isCounted, queues } = (await answer.json()) as Overview
    expect(isCounted).toBe(true)
    expect(rates.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(702)
    expect(rates.reduce((sum, { failed }) => sum + failed, 0)).toBe(601)
    const { code, reason, title, message } = sampleError
    expect(failures).toMatchObject([{ code, reason, title, jobs: 601, last: { message } }])
    expect(broken.map(({ id }) => id)).toContain(failures[0]?.last.id)
    expect(queues.find(({ workflow }) => workflow === 'service/held')?.medianMs).toBeGreaterThanOrEqual(0)
  })

  test('shows idle workers, and jobs that no living worker takes', async () => {
    const id = await submit('service/distant', 'far away')
    expect(await ask<JobFacts>(`job/${id}`)).toMatchObject({
      needs: ['gpu'],
      waiting: { reason: 'no_worker', message: expect.stringContaining('gpu') },
    })
    let seen: Overview | undefined
    // Queues and workers are cached for two seconds.
    await expect
      .poll(async () => (seen = await ask<Overview>('overview')).queues, { timeout: 30_000, interval: 200 })
      .toContainEqual(
        expect.objectContaining({ workflow: 'service/distant', needs: ['gpu'], queued: 1, workers: 0, slots: 0 }),
      )
    expect(seen?.workers).toMatchObject([
      { name: 'worker-1', offers: { workflows: expect.arrayContaining(['service/distant']) }, jobs: [] },
    ])
    await ask(`job/${id}/cancel`, {})
  })

  test('runs a failed job again, and deletes it', async () => {
    const id = await submit('service/failing', 'again')
    await until(id, ({ status }) => status === 'FAILED')
    expect(await ask<JobFacts>(`job/${id}/retry`, {})).toMatchObject({ id, status: 'QUEUED' })
    await until(id, ({ status, attempts }) => status === 'FAILED' && attempts === 4)
    const remove = () =>
      fetch(`${service.base}/operator/api/job/${id}/delete`, {
        method: 'POST',
        headers: { authorization: operatorKey },
      })
    expect((await remove()).status).toBe(204)
    expect((await remove()).status).toBe(404)
    expect(await service.engine.get(id)).toBeUndefined()
  })

  test('limits an application, and shows what it has used', async () => {
    const fourth = await service.addApplication('A fourth')
    const path = `application/${fourth.id}/limits`
    expect(await ask(path)).toMatchObject({ own: {}, effective: { maxQueuedJobs: 1000 }, used: { jobs: 0 } })
    const change = { jobs: 1, maxQueuedJobs: 5 }
    expect(await ask(path, change)).toMatchObject({ own: change, effective: change })
    const create = () => service.submit({ workflow: 'service/distant', name: 'One' }, { key: fourth.key })
    expect((await create()).status).toBe(200)
    expect(await (await create()).json()).toMatchObject({ code: 'QUOTA_EXCEEDED' })
    expect(await ask(path, { jobs: null })).toMatchObject({ own: { maxQueuedJobs: 5 }, used: { jobs: 1 } })
    const { revision } = await ask<{ revision: string }>(path)
    expect(await ask(path, { jobs: null, revision })).toMatchObject({ own: { maxQueuedJobs: 5 }, revision })
    expect((await create()).status).toBe(200)
    await service.engine.bulk('delete', { app: fourth.id })
    for (const [place, body, status] of [
      ['application/nobody/limits', { jobs: 1 }, 404],
      [path, { jobs: -1 }, 400],
      [path, { seconds: 1 }, 400],
      [path, { jobs: 2, revision: 'of an earlier look' }, 409],
    ] as const) {
      const refused = await fetch(`${service.base}/operator/api/${place}`, {
        method: 'POST',
        headers: { authorization: operatorKey, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      expect([place, refused.status]).toEqual([place, status])
    }
  })

  test('cancels, retries and deletes what a search shows, and never everything', async () => {
    await service.engine.schedule({ kind: 'workflow', id: 'service/failing' }, { state: 'paused' })
    const third = await service.addApplication('A third')
    for (let n = 0; n < 55; n++) await submit('service/failing', `Many ${n}`, third.key)
    const spared = await submit('service/failing', 'Spared', third.key)
    const count = (status: 'QUEUED' | 'FAILED') => service.engine.count({ app: third.id, statuses: [status] })
    const search = { app: third.id, text: 'many' }
    const first = await ask<BulkFacts>('jobs/cancel', search)
    expect(first).toMatchObject({ done: 50, refused: [], next: expect.any(String), isFull: false })
    expect(await ask<BulkFacts>('jobs/cancel', { ...search, after: first.next })).toMatchObject({ done: 5, next: null })
    expect([await count('QUEUED'), await count('FAILED')]).toEqual([1, 55])
    expect(await ask<BulkFacts>('jobs/retry', { app: third.id })).toMatchObject({ done: 50 })
    expect(await ask<BulkFacts>('jobs/retry', { app: third.id })).toMatchObject({ done: 5, next: null })
    expect(await ask<BulkFacts>('jobs/delete', { text: spared })).toMatchObject({ done: 1, next: null })
    expect([await count('QUEUED'), await count('FAILED')]).toEqual([55, 0])
    for (const body of [{}, { text: ' ' }, { text: '\u200b' }]) {
      const refused = await fetch(`${service.base}/operator/api/jobs/delete`, {
        method: 'POST',
        headers: { authorization: operatorKey, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      expect(refused.status).toBe(400)
    }
    await service.engine.bulk('delete', { app: third.id }, { limit: 100 })
    await service.engine.schedule({ kind: 'workflow', id: 'service/failing' }, { state: 'open' })
  })

  test('finds jobs of every application, by their fields and by text, page by page', async () => {
    const ids: string[] = []
    for (let i = 0; i < 60; i++) ids.unshift(await submit('service/failing', `Take ${i} of the search`, other.key))
    const first = await ask<JobPage>(`job?app=${other.id}&workflow=service/failing`)
    expect(first.jobs.map(({ id }) => id)).toEqual(ids.slice(0, 50))
    const second = await ask<JobPage>(`job?app=${other.id}&workflow=service/failing&after=${first.next}`)
    expect(second.jobs.map(({ id }) => id)).toEqual(ids.slice(50))
    expect(second.next).toBeNull()

    expect((await ask<JobPage>(`job?text=${ids[7]}`)).jobs).toMatchObject([{ id: ids[7], app: other.id }])
    const named = await ask<JobPage>('job?text=search%20tAke%2017')
    expect(named).toMatchObject({ jobs: [{ name: 'Take 17 of the search' }], next: null, looked: null })
    for (const id of ids) await until(id, ({ status }) => status === 'FAILED')
    const failed = await ask<JobPage>(`job?error=no%20disk&text=search&app=${other.id}`)
    expect(failed.jobs.map(({ id }) => id)).toEqual(ids.slice(0, 50))
    expect(failed.looked).toBe(50)
    expect((await ask<JobPage>('job?error=no%20disk&status=QUEUED')).jobs).toEqual([])
    expect((await ask<JobPage>('job?text=nothing+of+the+kind')).jobs).toEqual([])
  })

  test('shows of a job what its clients never see: attempts, worker, cause', async () => {
    const id = await submit('service/failing', 'shown')
    const job = await until(id, ({ status }) => status === 'FAILED')
    expect(job.history).toMatchObject([
      { token: 1, worker: 'worker-1', outcome: 'requeued' },
      { token: 2, worker: 'worker-1', outcome: 'failed' },
    ])
    for (const { reason, endedAt } of job.history) {
      expect(reason).toContain('no disk at /mnt/secret')
      expect(endedAt).not.toBeNull()
    }
    expect(job.failure).toMatch(/The disk is away[\s\S]*caused by Error: no disk at \/mnt\/secret\n {4}at /)
    const shown = JSON.stringify(await (await service.api(`/job/${id}`)).json())
    expect(shown).not.toMatch(/secret|worker-1|history/)
    const gone = await fetch(`${service.base}/operator/api/job/${crypto.randomUUID()}`, {
      headers: { authorization: operatorKey },
    })
    expect(gone.status).toBe(404)
  })

  test('cordons a worker, which the overview shows, and says if no worker has that name', async () => {
    const [worker] = (await ask<Overview>('overview')).workers
    const name = worker?.name ?? ''
    const states = async (state: string) =>
      (await ask<Overview>('worker', { name, state })).workers.map(({ offers }) => offers?.state)
    expect(await states('cordoned')).toEqual(['cordoned'])
    expect(await states('open')).toEqual(['open'])
    const answer = await fetch(`${service.base}/operator/api/worker`, {
      method: 'POST',
      headers: { authorization: operatorKey, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'nobody', state: 'cordoned' }),
    })
    expect(answer.status).toBe(404)
  })
})
