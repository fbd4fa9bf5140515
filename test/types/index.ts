import {
  analyzeWorkflow,
  notesWorkflow,
  practiceWorkflow,
  composeWorkflow,
  createEngine,
  defineWorkflow,
  inlineRunner,
  localQueue,
  type JobEngine,
  type JobRecord,
  type JobStatus,
  localFile,
  type Logger,
  type ServiceConfig,
  type WorkOrder,
  loudnessWorkflow,
  processRunner,
  program,
  type Runner,
  silentLogger,
  StemworkError,
  stems4Workflow,
  stemsWorkflow,
  stemsWorkflowOf,
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
const workflows: Workflow[] = [own, stemsWorkflow(), stemsWorkflow({ stems: 4 })]

const stems = 'service/stems-vocals-accompaniment'
const runner: Runner = processRunner({ resolve: () => own, slots: 2 })
expectType<Logger>()(silentLogger)
const logger: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const engine = createEngine({
  workflows: [own, stemsWorkflow()],
  runner,
  limits: { maxAudioSeconds: 600 },
  dispatch: { concurrency: 2 },
  logger,
})
const asEver: JobEngine = engine
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
processRunner({})
// @ts-expect-error: for stems of one's own the workflow has an id
stemsWorkflow({ stems: ['drums'] })
// @ts-expect-error: two stems or four
stemsWorkflow({ stems: 5 })
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

// Old names give the new ones in their types.
expectType<"Renamed: inlineRunner of 'stemwork/testing'">()(inlineRunner)
expectType<"Renamed: memoryQueue of 'stemwork/memory'">()(localQueue)
expectType<'Renamed: stemsWorkflow({ stems: 4 })'>()(stems4Workflow)
expectType<'Renamed: stemsWorkflow({ id, name, description, stems, model })'>()(stemsWorkflowOf)
expectType<'Renamed: the lines in docs/usage.md'>()(stripeMeterEvent)
declare const order: WorkOrder
expectType<"Renamed: the type of this name of 'stemwork/adapter'">()(order)
// @ts-expect-error: it does not compile
localQueue()

// The command line's configuration file.
export const configuration = {
  port: 9000,
  console: true,
  workflows: ['workflows', 'more.json'],
  aliases: 'own/stems=service/stems-vocals-accompaniment',
  provider: 'cuda',
  grace: 30,
} satisfies ServiceConfig
// @ts-expect-error: a port is a number
export const text: ServiceConfig = { port: 'nine' }
// @ts-expect-error: one of its choices
export const choice: ServiceConfig = { provider: 'gpu' }
// @ts-expect-error: its name is apiKeys
export const old: ServiceConfig = { apiKey: 'a-key-of-your-own' }
// @ts-expect-error: named as in code, not as on the command line
export const flag: ServiceConfig = { 'public-url': 'https://stems.example.org' }
// @ts-expect-error: a switch is true or false
export const onOff: ServiceConfig = { console: 'on' }
