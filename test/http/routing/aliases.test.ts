import { afterAll, beforeAll, expect, test } from 'vitest'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { JobEngine } from '../../../src/core/engine/engine.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { pollJob, type Service, startService } from '../harness.js'
import { createClient } from '../../../src/client/client.js'
import { workflowTools } from '../../../src/mcp/workflow-tools.js'
import { copyingStems } from '../light-workflows.js'

/** A workflow has further ids, so that programs written for another service need only change its address. */

const own = 'service/stems-vocals-accompaniment'
const alias = 'music-ai/stems-vocals-accompaniment'

let service: Service
beforeAll(async () => {
  service = await startService({ engine: { aliases: { [alias]: own } } })
})
afterAll(() => service.close())

const json = async (answer: Promise<Response>) => (await (await answer).json()) as never

async function create(workflow: string): Promise<string> {
  const params = { inputUrl: await service.uploaded(Buffer.from('RIFF')) }
  return service.created({ workflow, params })
}

test('a job by an alias runs the workflow, and is shown with the id that its client used', async () => {
  const id = await create(alias)
  expect(await pollJob(service, id)).toMatchObject({
    status: 'SUCCEEDED',
    workflow: { id: alias, name: 'Vocals and accompaniment' },
    result: { vocals: expect.any(String), accompaniments: expect.any(String) },
  })
  expect(await service.engine.get(id)).toMatchObject({ workflow: own, alias })
})

test('jobs are found by either id, whichever they were created with', async () => {
  const ids = [await create(own), await create(alias)].sort()
  for (const workflow of [own, alias]) {
    const listed = (await json(service.api(`/job?workflow=${workflow}`))) as { id: string }[]
    expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining(ids))
    const body = JSON.stringify({ workflow: [workflow] })
    await Promise.all(ids.map((id) => pollJob(service, id)))
    const report = await json(service.api('/job/delete', { method: 'POST', body }))
    expect(report).toMatchObject({ done: listed.length, refused: [] })
    ids.splice(0, 2, await create(own), await create(alias))
  }
})

test('the list of workflows leads from page to page, as that of jobs does', async () => {
  const found: string[] = []
  let next: string | undefined = `${service.base}/workflow?size=2`
  while (next) {
    const answer: Response = await fetch(next, { headers: { authorization: service.app.key } })
    const { workflows } = (await answer.json()) as { workflows: { id: string }[] }
    found.push(...workflows.map(({ id }) => id))
    next = /^<(.+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  const all = (await json(service.api('/workflow'))) as { workflows: { id: string }[] }
  expect(found).toEqual(all.workflows.map(({ id }) => id))
  expect(found).toHaveLength(3)
})

test('aliases are listed and described as the workflows that they are; a wrong id names them', async () => {
  const answer = await service.api('/workflow')
  expect(answer.headers.get('x-total-count')).toBe('3')
  const { workflows } = (await answer.json()) as { workflows: { id: string }[] }
  expect(workflows).toContainEqual({
    id: alias,
    name: 'Vocals and accompaniment',
    description: expect.any(String),
    aliasOf: own,
  })
  expect(workflows.filter((each) => 'aliasOf' in each)).toHaveLength(1)
  for (const path of [alias, encodeURIComponent(alias)])
    expect(await json(service.api(`/workflow/${path}`))).toMatchObject({
      id: alias,
      aliasOf: own,
      params: { type: 'object' },
    })
  expect(await json(service.submit({ workflow: 'music-ai/none' }))).toMatchObject({
    code: 'UNKNOWN_WORKFLOW',
    message: expect.stringContaining(`Known workflows: ${own}, service/held, ${alias}.`),
  })
})

test('agents have one tool for a workflow, whatever its ids', async () => {
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
  const tools = await workflowTools(client, { signal: AbortSignal.timeout(10_000), withSchemas: false })
  expect(tools.filter(({ name }) => name.includes('stems'))).toHaveLength(1)
})

test('a pause of the workflow holds back the jobs of its aliases', async () => {
  await service.engine.schedule({ kind: 'workflow', id: own }, { state: 'paused' })
  const id = await create(alias)
  expect(await json(service.api(`/job/${id}`))).toMatchObject({ status: 'QUEUED', waiting: { reason: 'paused' } })
  await service.engine.schedule({ kind: 'workflow', id: own }, { state: 'open' })
  expect(await pollJob(service, id)).toMatchObject({ status: 'SUCCEEDED' })
})

test('a batch may name an alias', async () => {
  const inputUrl = await service.uploaded(Buffer.from('RIFF'))
  const jobs = [{ workflow: alias, params: { inputUrl } }]
  const { ids } = await service.engine.submitBatch({ app: service.app.id, jobs })
  expect(await service.engine.get(ids[0]!)).toMatchObject({ workflow: own, alias })
})

test.each([
  [{ a: 'service/none' }, 'The alias "a" cannot be used: there is no workflow "service/none"; known workflows: '],
  [{ [own]: own }, `The alias "${own}" cannot be used: there is a workflow with this id.`],
  [{ 'no spaces': own }, 'The alias "no spaces" cannot be used: must be path-like'],
])('createEngine refuses the aliases %o', (aliases, message) => {
  const workflow = copyingStems()
  const parts = { jobs: memoryJobs(), blobs: memoryBlobs(), queue: memoryQueue(), applications: memoryApplications() }
  const runner = inlineRunner({ resolve: () => workflow })
  expect(() => new JobEngine({ ...parts, runner, workflows: [workflow] }, { aliases })).toThrow(message)
})
