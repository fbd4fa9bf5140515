import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createClient } from '../../../src/client/client.js'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import type { JobFacts } from '../../../src/http/operator/answers.js'
import { type Service, startService } from '../harness.js'

const operatorKey = 'the-key-of-the-operator'
const approved = defineWorkflow({
  id: 'service/approved',
  name: 'Approved',
  description: 'Waits for an approval.',
  params: z.object({}),
  inputs: [],
  outputs: {},
  events: ['approval'],
  async run({ step, detail }) {
    await step.run('draft', async ({ file }) => {
      const draft = file('draft.txt')
      await writeFile(draft.path, 'a draft')
      return draft
    })
    await step.waitFor('review', { timeoutMs: 10 })
    detail('approval', await step.waitFor('approval', { timeoutMs: 3_600_000 }))
  },
})

const endless = [Infinity, Number.MAX_SAFE_INTEGER].map((timeoutMs, n) =>
  defineWorkflow({
    id: `service/patient-${n}`,
    name: 'Patient',
    description: 'Waits for ever.',
    params: z.object({}),
    inputs: [],
    outputs: {},
    events: ['approval'],
    run: async ({ step }) => void (await step.waitFor('approval', { timeoutMs })),
  }),
)

let service: Service
beforeAll(async () => {
  service = await startService({
    http: { operator: { key: operatorKey } },
    engine: { dispatch: { sweepIntervalMs: 50 } },
    workflows: [approved, ...endless],
  })
})
afterAll(() => service.close())

test('a client sends the events that the workflow takes from clients, once each, and sees the steps', async () => {
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
  expect((await client.workflow(approved.id)).events).toEqual(['approval'])
  const { id } = await client.createJob({ workflow: approved.id, params: {} })
  let job = await client.getJob(id)
  while (!job.steps?.some(({ name }) => name === 'approval')) {
    job = await client.getJob(id)
    expect(job).toMatchObject({ error: null })
  }
  const [draft, review, approval] = job.steps
  expect(draft).toMatchObject({ name: 'draft', state: 'done', attempts: 1, error: null, files: { 'draft.txt': 7 } })
  expect([review?.state, approval?.state, approval?.endedAt]).toEqual(['done', 'waiting', null])

  const other = await service.addApplication('Other')
  const stranger = createClient({ baseUrl: service.base, apiKey: other.key })
  const refused = (code: string, message?: string) =>
    expect.objectContaining({ code, ...(message ? { message: expect.stringContaining(message) } : {}) })
  await expect(stranger.sendEvent(id, 'approval', 1)).rejects.toEqual(refused('NOT_FOUND'))
  // Only the host may send this event.
  await expect(client.sendEvent(id, 'review', 1)).rejects.toEqual(refused('NOT_FOUND', 'from clients, but approval'))
  await expect(client.sendEvent(id, 'approval', 'x'.repeat(20_000))).rejects.toEqual(refused('BAD_INPUT'))
  await client.sendEvent(id, 'approval', { by: 'Ann' })
  expect((await client.waitForJob(id)).details).toEqual({ approval: { by: 'Ann' } })
  await expect(client.sendEvent(id, 'approval', 2)).rejects.toEqual(refused('CONFLICT'))

  const headers = { authorization: operatorKey }
  const facts = (await (await fetch(`${service.base}/operator/api/job/${id}`, { headers })).json()) as JobFacts
  expect(facts.steps).toMatchObject([
    { name: 'draft', state: 'done', files: [{ name: 'draft.txt', bytes: 7 }] },
    { name: 'review', state: 'done' },
    { name: 'approval', state: 'done' },
  ])
})

test.each(endless)('a client sees a job that waits for ever, and ends its wait: $id', async ({ id: workflow }) => {
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key, retries: 0 })
  const { id } = await client.createJob({ workflow, params: {} })
  let job = await client.getJob(id)
  while (job.status !== 'QUEUED' || job.steps?.[0]?.state !== 'waiting') job = await client.getJob(id)
  expect(job).toMatchObject({ waiting: { reason: 'scheduled' } })
  await client.sendEvent(id, 'approval')
  expect(await client.waitForJob(id)).toMatchObject({ status: 'SUCCEEDED' })
})
