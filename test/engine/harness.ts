import { writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { type EngineParts, JobEngine } from '../../src/core/engine/engine.js'
import type { EngineEventName } from '../../src/core/engine/events.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { EngineSettings } from '../../src/core/engine/options.js'
import type { BlobStore } from '../../src/core/engine/ports/blob-store.js'
import { type Logger, silentLogger } from '../../src/core/engine/ports/logger.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import type { RunContext } from '../../src/core/engine/workflow/steps.js'
import {
  defineWorkflow,
  type StageContext,
  type Workflow,
  type WorkflowDefinition,
} from '../../src/core/engine/workflow/workflow.js'

/** A clock that stands still until a test moves it. */
export function steppingClock(start = 1_700_000_000_000) {
  let now = start
  return { now: () => now, advance: (ms: number) => void (now += ms) }
}

/** A workflow without inputs whose only stage runs the test's function and writes a text output. */
export function textWorkflow(
  run: (context: StageContext) => Promise<void> | void = () => {},
  id = 'test/text',
): Workflow {
  return defineWorkflow({
    id,
    name: 'Text',
    description: 'Writes a text.',
    params: z.looseObject({}),
    inputs: [],
    outputs: { text: { fileName: 'text.txt', contentType: 'text/plain' } },
    stages: [
      {
        name: 'write',
        async run(context) {
          await run(context)
          await writeFile(context.outputPath('text'), `text of ${context.jobId}`)
        },
      },
    ],
  })
}

/** A workflow that runs this function, without inputs. */
export function stepsWorkflow(
  run: (context: RunContext) => ReturnType<NonNullable<WorkflowDefinition['run']>>,
  changes: Partial<Pick<WorkflowDefinition, 'events' | 'needs' | 'outputs' | 'policy'>> = {},
): Workflow {
  return defineWorkflow({
    id: 'test/steps',
    name: 'Steps',
    description: '',
    params: z.object({}),
    inputs: [],
    outputs: {},
    run,
    ...changes,
  })
}

export interface TestEngine {
  engine: JobEngine
  parts: EngineParts
  /** Names of the events so far, in order. */
  events: EngineEventName[]
  submit(params?: Record<string, unknown>, workflow?: string): Promise<JobRecord>
  /** Resolves with the job once it has one of the statuses. */
  until(id: string, ...statuses: JobRecord['status'][]): Promise<JobRecord>
}

/** Blobs of a store that workers share: only such a store keeps work. */
export const sharedBlobs = (changes: Partial<BlobStore> = {}): BlobStore => ({
  ...memoryBlobs(),
  traits: { scope: 'shared' },
  ...changes,
})

export function testEngine(
  workflow: Workflow,
  settings: EngineSettings = {},
  parts: Partial<EngineParts> = {},
): TestEngine {
  const all: EngineParts = {
    jobs: memoryJobs(),
    blobs: memoryBlobs(),
    queue: memoryQueue(),
    applications: memoryApplications(),
    workflows: [workflow],
    runner: inlineRunner({ resolve: () => workflow }),
    ...parts,
  }
  const engine = new JobEngine(all, {
    logger: silentLogger,
    ...settings,
    // A retry may be announced a moment before it is due; then only the sweep, by default every 15 s, starts it.
    dispatch: { retryDelayMs: 1, progressIntervalMs: 20, sweepIntervalMs: 50, ...settings.dispatch },
  })
  const events: EngineEventName[] = []
  for (const name of [
    'job.created',
    'job.started',
    'job.succeeded',
    'job.failed',
    'job.requeued',
    'job.deleted',
  ] as const) {
    engine.on(name, () => events.push(name))
  }
  return {
    engine,
    parts: all,
    events,
    async submit(params = {}, id = workflow.id) {
      return (await engine.submit({ app: 'app', workflow: id, params })).job
    },
    until: (id, ...statuses) =>
      new Promise((resolve, reject) => {
        const names = ['job.started', 'job.succeeded', 'job.failed', 'job.requeued'] as const
        const check = async () => {
          const job = await engine.get(id)
          if (!job || !statuses.includes(job.status)) return
          for (const name of names) engine.off(name, listener)
          resolve(job)
        }
        const listener = () => void check().catch(reject)
        for (const name of names) engine.on(name, listener)
        listener()
      }),
  }
}

/** A promise with the function that resolves it. */
export function gate<Value = void>() {
  let open: (value: Value) => void = () => {}
  const opened = new Promise<Value>((resolve) => (open = resolve))
  return { opened, open }
}

/** A logger that records its lines. */
export function recordingLogger(): { logger: Logger; lines: { level: string; fields: Record<string, unknown> }[] } {
  const lines: { level: string; fields: Record<string, unknown> }[] = []
  const keep = (level: string) => (fields: Record<string, unknown>) => void lines.push({ level, fields })
  return { logger: { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') }, lines }
}

export async function keys(
  blobs: EngineParts['blobs'],
  prefixes: readonly string[] = ['results/', 'uploads/'],
): Promise<string[]> {
  const found: string[] = []
  for (const prefix of prefixes) for await (const { key } of blobs.list(prefix)) found.push(key)
  return found
}

export async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

export async function textOf(blobs: EngineParts['blobs'], key: string): Promise<string> {
  const blob = await blobs.get(key)
  if (!blob) throw new Error(`no blob ${key}`)
  const chunks: Uint8Array[] = []
  for await (const chunk of blob.body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
