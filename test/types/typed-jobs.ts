import {
  composeWorkflow,
  createEngine,
  defineWorkflow,
  type JobEngine,
  localFile,
  stemsWorkflow,
  type Workflow,
} from 'stemwork'
import { type Client, createClient, type Job } from 'stemwork/client'
import { createHandler } from 'stemwork/http'
import { createTestEngine } from 'stemwork/testing'
import { z } from 'zod'
import { expectType } from './expect-type.js'

// Types that a submission and a client derive from the workflows given to `createEngine`.

const report = { fileName: 'report.json', contentType: 'application/json' }
const loudness = defineWorkflow({
  id: 'service/loudness',
  name: 'Loudness',
  description: 'Measures a file, against another one if there is one.',
  params: z.strictObject({ inputUrl: z.url(), referenceUrl: z.url().optional(), target: z.number().default(-14) }),
  inputs: ['inputUrl', 'referenceUrl'],
  outputs: { report, picture: { ...report, optional: true } },
  stages: [{ name: 'measure', run: async () => {} }],
})
const tidy = defineWorkflow({
  id: 'service/tidy',
  name: 'Tidy',
  description: 'Needs nothing.',
  params: z.object({ days: z.number().optional() }),
  inputs: [],
  outputs: ({ days }) => (days === 1 ? { report } : {}),
  stages: [{ name: 'tidy', run: async () => {} }],
})

const engine = createEngine({ workflows: [loudness, tidy, stemsWorkflow()] })
const inputUrl = 'https://example.org/song.mp3'

export async function submit(): Promise<void> {
  await engine.submit({ app: 'me', workflow: 'service/loudness', params: { inputUrl, target: -23 }, name: 'one' })
  await engine.submit({ app: 'me', workflow: 'service/loudness', inputs: { inputUrl: localFile('song.wav') } })
  await engine.submit({
    app: 'me',
    workflow: 'service/loudness',
    params: { inputUrl },
    uploads: { referenceUrl: 'uploads/me/1' },
    copyResultsTo: { report: inputUrl },
  })
  await engine.submit({ app: 'me', workflow: 'service/tidy' })
  await engine.submit({
    app: 'me',
    workflow: 'service/stems-vocals-accompaniment',
    params: { inputUrl, format: 'flac' },
  })

  // @ts-expect-error: a number
  await engine.submit({ app: 'me', workflow: 'service/loudness', params: { inputUrl, target: 'loud' } })
  // @ts-expect-error: no such param
  await engine.submit({ app: 'me', workflow: 'service/loudness', params: { inputUrl, targets: -23 } })
  // @ts-expect-error: params of another workflow
  await engine.submit({ app: 'me', workflow: 'service/loudness', params: { inputUrl, format: 'flac' } })
  // @ts-expect-error: the input is missing
  await engine.submit({ app: 'me', workflow: 'service/loudness', params: { target: -23 } })
  // @ts-expect-error: params are missing
  await engine.submit({ app: 'me', workflow: 'service/loudness' })
  // @ts-expect-error: no such input
  await engine.submit({ app: 'me', workflow: 'service/loudness', inputs: { songUrl: localFile('song.wav') } })
  await engine.submit({
    app: 'me',
    workflow: 'service/loudness',
    params: { inputUrl },
    // @ts-expect-error: no such output
    copyResultsTo: { stem: inputUrl },
  })
  await engine.submit({
    app: 'me',
    workflow: 'service/stems-vocals-accompaniment',
    // @ts-expect-error: no such format
    params: { inputUrl, format: 'ogg' },
  })
  // @ts-expect-error: a workflow that this engine has not
  await engine.submit({ app: 'me', workflow: 'service/stems-4', params: { inputUrl } })
}

export async function submitBatch(songs: string[]): Promise<void> {
  const workflow = 'service/loudness'
  const made = songs.map((song) => ({ workflow, params: { inputUrl: song } }))
  await engine.submitBatch({ app: 'me', jobs: made })
  await engine.submitBatch({ app: 'me', jobs: songs.map((song) => ({ workflow, params: { inputUrl: song } })) })
  await engine.submitBatch({
    app: 'me',
    jobs: [
      { workflow: 'service/tidy' },
      { workflow: 'service/loudness', params: { inputUrl, target: -23 }, name: 'a' },
    ],
  })
  const tidying = { workflow: 'service/tidy' } as const
  // @ts-expect-error: a number
  await engine.submitBatch({ app: 'me', jobs: [tidying, { workflow, params: { inputUrl, target: 'loud' } }] })
  // @ts-expect-error: params of another workflow
  await engine.submitBatch({ app: 'me', jobs: [tidying, { workflow, params: { inputUrl, days: 1 } }] })
  // @ts-expect-error: the input is missing
  await engine.submitBatch({ app: 'me', jobs: [tidying, { workflow, params: { target: -23 } }] })
  // @ts-expect-error: a workflow that this engine has not
  await engine.submitBatch({ app: 'me', jobs: [tidying, { workflow: 'service/stems-4', params: { inputUrl } }] })

  await client.createBatch({ jobs: songs.map((song) => ({ workflow, params: { inputUrl: song } })) })
  const empty = { ...tidying, params: {} }
  await client.createBatch({ jobs: [empty, { workflow, params: { inputUrl, target: -23 } }] })
  // @ts-expect-error: a number
  await client.createBatch({ jobs: [empty, { workflow, params: { inputUrl, target: 'loud' } }] })
  // @ts-expect-error: params of another workflow
  await client.createBatch({ jobs: [empty, { workflow, params: { inputUrl, days: 1 } }] })
  // @ts-expect-error: a workflow that the engine has not
  await client.createBatch({ jobs: [{ workflow: 'service/stems-4', params: { inputUrl } }] })
}

/** Without any `workflows`, the engine has that of the package, and a test's engine has those that it is given. */
export async function others(): Promise<void> {
  await createEngine({ limits: { maxAudioSeconds: 60 } }).submit({
    app: 'me',
    workflow: 'service/stems-vocals-accompaniment',
    // @ts-expect-error: a yes or a no
    params: { inputUrl, pictures: 'yes' },
  })
  // @ts-expect-error: a number
  await createTestEngine({ workflows: [tidy] }).submit({ app: 'me', workflow: 'service/tidy', params: { days: 'all' } })
}

/** Values unknown to the compiler are still checked at run time. */
export async function untyped(workflow: string, params: Record<string, unknown>, loaded: Workflow[]): Promise<void> {
  await engine.submit({ app: 'me', workflow, params })
  await createEngine({ workflows: loaded }).submit({ app: 'me', workflow: 'service/any', params: { any: 1 } })
  await createEngine({ workflows: [loudness, ...loaded] }).submit({ app: 'me', workflow: 'service/any', params: {} })
  const any: JobEngine = engine
  await any.submit({ app: 'me', workflow: 'service/any', params })
  await any.submitBatch({ app: 'me', jobs: [{ workflow: 'service/any', params }] })
  await engine.submitBatch({ app: 'me', jobs: [{ workflow, params }] })
  createHandler(engine)
  const plain: Workflow = loudness
  expectType<string>()(plain.id)
}

const client = createClient<typeof engine>({ baseUrl: 'https://example.org/v1', apiKey: 'key' })

export async function request(id: string): Promise<void> {
  const made = await client.createJob({ workflow: 'service/loudness', params: { inputUrl, target: -23 }, name: 'one' })
  const job = await client.waitForJob(made.id)
  expectType<'service/loudness'>()(job.workflow.id)
  expectType<number | undefined>()(job.workflowParams.target)
  expectType<string | undefined>()(job.result?.report)
  if (job.result) {
    expectType<string>()(job.result.report)
    expectType<string | undefined>()(job.result.picture)
    // @ts-expect-error: no such output
    void job.result.vocals
  }
  const stems = await client.createJob({ workflow: 'service/stems-vocals-accompaniment', params: { inputUrl } })
  const separated = await client.getJob(stems.id)
  if (separated.result) {
    expectType<string>()(separated.result.vocals)
    expectType<string | undefined>()(separated.result.vocalsPeaks)
    await client.download(separated.result.accompaniments)
  }
  // A plain id may belong to a job of any workflow.
  const any = await client.getJob(id)
  expectType<'service/loudness' | 'service/tidy' | 'service/stems-vocals-accompaniment'>()(any.workflow.id)
  if (any.result && 'vocals' in any.result) expectType<string>()(any.result.vocals)
  for (const url of Object.values(any.result ?? {})) expectType<string>()(url)
  const { jobs } = await client.listJobs()
  expectType<typeof any.workflow.id | undefined>()(jobs[0]?.workflow.id)

  // @ts-expect-error: a number
  await client.createJob({ workflow: 'service/loudness', params: { inputUrl, target: 'loud' } })
  // @ts-expect-error: no such param
  await client.createJob({ workflow: 'service/loudness', params: { inputUrl, targets: -23 } })
  // @ts-expect-error: the input is missing
  await client.createJob({ workflow: 'service/loudness', params: {} })
  // @ts-expect-error: a workflow that the engine has not
  await client.createJob({ workflow: 'service/stems-4', params: { inputUrl } })
  const plain: Client = client
  expectType<Job>()(await plain.getJob(made.id))
}

const loud = composeWorkflow({
  id: 'service/loud',
  name: 'Loud',
  description: 'A composition, of which only the id is known.',
  steps: { measure: { workflow: loudness } },
  outputs: { report: 'measure.report' },
})
const both = createEngine({ workflows: [loudness, loud] })

export async function compose(): Promise<void> {
  await both.submit({ app: 'me', workflow: 'service/loud', params: { inputUrl } })
  // @ts-expect-error: a number
  await both.submit({ app: 'me', workflow: 'service/loudness', params: { inputUrl, target: 'loud' } })
  // @ts-expect-error: a workflow that this engine has not
  await both.submit({ app: 'me', workflow: 'service/quiet', params: { inputUrl } })
}

const four = createEngine({ workflows: [stemsWorkflow({ stems: 4 })] })
const fourClient = createClient<typeof four>({ baseUrl: 'https://example.org/v1', apiKey: 'key' })
export const drumsOf = async (id: string): Promise<string | undefined> => (await fourClient.getJob(id)).result?.drums
