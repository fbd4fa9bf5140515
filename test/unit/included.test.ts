import Keyv from 'keyv'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { keyvStores } from '../../src/adapters/stores/keyv/index.js'
import { newJob } from '../../src/core/engine/job/new-job.js'
import { createEngine } from '../../src/create-engine.js'
import { createClient } from '../../src/client/client.js'
import { createApplication, createHandler } from '../../src/http/index.js'
import { workflowTools } from '../../src/mcp/workflow-tools.js'

/** The README's list of included things. */

const names = ['stems-vocals-accompaniment', 'loudness', 'transcode', 'analyze', 'notes', 'practice']
const included = names.map((name) => `service/${name}`)

test('an engine without options offers all that is included, to HTTP and to agents', async () => {
  const engine = createEngine()
  expect(engine.workflows.list().map(({ id }) => id)).toEqual(included)
  const handler = createHandler(engine, { basePath: '/v1', anonymous: { id: 'a', name: 'A' } })
  const inProcess = (url: string | URL | Request, init?: RequestInit) => handler(new Request(url, init))
  const client = createClient({ baseUrl: 'http://localhost/v1', fetch: inProcess })
  expect((await client.workflows()).map(({ id }) => id)).toEqual(included)
  const tools = await workflowTools(client, { signal: AbortSignal.timeout(10_000), withSchemas: true })
  expect(tools.map(({ name }) => name)).toEqual(names.map((name) => `run_${name}`))
  await engine.close()
})

test('pictures of stems are PNG: in the description of the param, the outputs and their names', () => {
  const [stems] = createEngine().workflows.list()
  const { vocalsWaveform } = stems!.outputs({ inputUrl: 'http://localhost/', pictures: true, format: '16' })
  expect(vocalsWaveform).toEqual({ fileName: 'vocals.waveform.png', contentType: 'image/png' })
  const { properties } = z.toJSONSchema(stems!.params, { io: 'input' })
  expect(properties?.pictures).toHaveProperty('description', expect.stringContaining('a picture (PNG) of each stem'))
})

test('keyvStores keeps jobs and applications in one Keyv, with its settings for both', async () => {
  const keyv = new Keyv()
  let now = 1000
  const { jobs, applications } = keyvStores({ keyv, clock: () => now })
  const { id } = await createApplication(applications, { name: 'Shop' })
  const request = { app: id, name: null, workflow: 'w', params: {}, uploads: {}, batchName: null, metadata: {} }
  const { job } = await jobs.create(newJob({ ...request, copyResultsTo: {}, webhook: null, idempotency: null }))
  expect(job.createdAt).toBe(1000)
  now = 2000
  expect(await jobs.time()).toBe(2000)
  const again = keyvStores({ keyv })
  expect(await again.jobs.get(job.id)).toEqual(job)
  expect(await again.applications.getApplication(id)).toMatchObject({ name: 'Shop' })
})
