import {
  analyzeWorkflow,
  notesWorkflow,
  practiceWorkflow,
  composeWorkflow,
  createEngine,
  defineWorkflow,
  inlineRunner,
  type JobEngine,
  type JobRecord,
  type JobStatus,
  localFile,
  localQueue,
  type Logger,
  loudnessWorkflow,
  processRunner,
  program,
  type Runner,
  silentLogger,
  stems4Workflow,
  StemworkError,
  stemsWorkflow,
  stemsWorkflowOf,
  type LedgerEntry,
  type StripeMeterEvent,
  stripeMeterEvent,
  transcodeWorkflow,
  type Workflow,
} from 'stemwork'
import { fastify } from 'fastify'
import { pino } from 'pino'
import { z } from 'zod'
import { expectType } from './expect-type.js'

const own = defineWorkflow({
  id: 'a',
  name: 'A',
  description: '',
  params: z.object({}),
  inputs: [],
  outputs: {},
  stages: [{ name: 'run', run: async () => {} }],
})
const workflows: Workflow[] = [own, stemsWorkflow(), stems4Workflow()]

const stems = 'service/stems-vocals-accompaniment'
const runner: Runner = inlineRunner({ resolve: () => own })
expectType<Logger>()(silentLogger)
const logger: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const engine = createEngine({
  workflows: [own, stemsWorkflow()],
  queue: localQueue(),
  runner,
  limits: { maxAudioSeconds: 600 },
  dispatch: { concurrency: 2 },
  logger,
})
const asEver: JobEngine = engine
processRunner({ resolve: () => own, slots: 2 })
program('sox', { args: ['--version'], timeoutMs: 1000 })
createEngine({ logger: console, child: { environment: { A: 'b' }, nodeArguments: ['--max-old-space-size=500'] } })
createEngine({ logger: pino(), workflows })
void asEver.close()
createEngine({ logger: fastify().log })

export async function use(): Promise<void> {
  await engine.start()
  const { job, created } = await engine.submit({ app: 'me', workflow: 'a', params: {} })
  expectType<JobRecord>()(job)
  expectType<boolean>()(created)
  expectType<JobStatus>()(job.status)
  expectType<JobRecord | undefined>()(await engine.get(job.id, { app: 'me' }))
  expectType<JobRecord | undefined>()(await engine.run(job.id))
  expectType<JobRecord | undefined>()(await engine.run(job.id, { signal: AbortSignal.timeout(1) }))
  expectType<JobRecord | undefined>()(await engine.runOnce())
  await engine.submit({ app: 'me', workflow: stems, inputs: { inputUrl: localFile('song.mp3') } })
  // @ts-expect-error: this workflow has no inputs
  await engine.submit({ app: 'me', workflow: 'a', inputs: { inputUrl: localFile('song.mp3') } })
  // @ts-expect-error: a path alone may come from anywhere
  await engine.submit({ app: 'me', workflow: stems, inputs: { inputUrl: 'song.mp3' } })
  await engine.blobs.put('uploads/me/1', 'text')
  await engine.blobs.put('uploads/me/2', new Uint8Array(1))
  expectType<JobRecord | undefined>()(await engine.cancel(job.id))
  expectType<JobRecord | undefined>()(await engine.delete(job.id))
  engine.on('job.succeeded', (event) => expectType<JobRecord>()(event.job))
  // @ts-expect-error: no such event
  engine.on('job.done', () => {})
  // @ts-expect-error: a job has a workflow
  await engine.submit({ app: 'me', params: {} })
  // @ts-expect-error: not an option of close
  await engine.close({ timeout: 1 })
  await engine.close({ timeoutMs: 1 })
}

export function read(error: unknown): string | undefined {
  if (!StemworkError.is(error)) return undefined
  // @ts-expect-error: not a code of this package
  if (error.code === 'ENOENT') return undefined
  return error.code === 'QUEUE_FULL' && error.retryable ? error.message : error.reason
}

// @ts-expect-error: seconds are a number
createEngine({ limits: { maxAudioSeconds: '600' } })
// @ts-expect-error: no such part
createEngine({ store: undefined })
// @ts-expect-error: a runner needs to know the workflows
inlineRunner({})
// @ts-expect-error: a definition names stems and a model
stemsWorkflowOf({})
const composed = composeWorkflow({
  id: 'loud',
  name: 'Loud',
  description: '',
  steps: { measure: { workflow: loudnessWorkflow(), inputs: { inputUrl: 'inputUrl' }, policy: { maxAttempts: 2 } } },
  outputs: { report: 'measure.report' },
})
createEngine({ workflows: [composed, analyzeWorkflow(), notesWorkflow(), practiceWorkflow(), transcodeWorkflow()] })
// @ts-expect-error: an output names a step's output
composeWorkflow({ id: 'a', name: 'A', description: '', steps: {}, outputs: { report: 1 } })
// @ts-expect-error: not a format
transcodeWorkflow({ format: 'ogg' })
declare const entry: LedgerEntry
const meter = { eventName: 'audio_seconds', customer: 'cus_1', value: ({ bytes }: LedgerEntry) => bytes }
expectType<StripeMeterEvent>()(stripeMeterEvent(entry, meter))
// @ts-expect-error: a meter has a name
stripeMeterEvent(entry, { customer: 'cus_1' })
