import type { JobEngine, JobRecord, Runner, Workflow } from 'stemwork'
import { createTestEngine, inlineRunner, runWorkflow, waitForJob, type WorkflowRun } from 'stemwork/testing'
import { expectType } from './expect-type.js'

declare const workflow: Workflow
expectType<Runner>()(inlineRunner({ resolve: () => workflow }))
// @ts-expect-error: a runner needs to know the workflows
inlineRunner({})
const engine = createTestEngine({ workflows: [workflow], dispatch: { maxAttempts: 1 } })
expectType<JobEngine>()(engine)

export async function use(): Promise<void> {
  expectType<JobRecord>()(await waitForJob(engine, 'id', { timeoutMs: 100, signal: AbortSignal.timeout(50) }))
  expectType<WorkflowRun>()(await runWorkflow(workflow, { failures: { cut: ['kill', new Error('disk full')] } }))
  // @ts-expect-error: what happens is an error or a kill
  await runWorkflow(workflow, { failures: { cut: ['crash'] } })
  // @ts-expect-error: a job is named by its id
  await waitForJob(engine, { id: 'id' })
}

// @ts-expect-error: the workflows are what is tested
createTestEngine({})
// @ts-expect-error: its runner is the inline one
createTestEngine({ workflows: [workflow], runner: undefined })
