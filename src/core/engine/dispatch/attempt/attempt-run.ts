import type { JobRecord } from '../../job/job.js'
import type { InputFile, RunOptions, RunSteps, StepState, WorkOrder, WorkResult } from '../../ports/runner.js'
import type { Step, Workflow } from '../../workflow/workflow.js'
import type { AttemptSpans } from './attempt-spans.js'
import { type Policy, policyOf } from './policy.js'
import { runSteps } from './run-steps.js'
import type { SharedParts } from '../../engine-parts.js'

interface RunContext extends Pick<SharedParts, 'runner' | 'options' | 'logger'> {
  job: JobRecord
  inputs: Record<string, InputFile>
  directory: string
  /** Returns kept work of the run or of one step, and the port that keeps more. */
  checkpoint: NonNullable<Parameters<typeof runSteps>[3]['checkpoint']>
  /** Keeps the steps of a workflow with steps. */
  steps?: RunSteps & { readonly kept: StepState[] }
  /** Labels that this worker offers to steps. */
  offers?: string[]
  policy: Policy
  spans: AttemptSpans
  signal: AbortSignal
  onProgress: RunOptions['onProgress']
}

/** Runs the workflow on the inputs: as one order, or as one order for each step of a composition. */
export async function runWorkflow(workflow: Workflow, context: RunContext): Promise<WorkResult> {
  const { job, directory, checkpoint, steps, runner, options, spans } = context
  const { composition } = workflow
  const order: WorkOrder = {
    jobId: job.id,
    workflow: workflow.id,
    module: workflow.module?.url ?? null,
    settings: workflow.module?.settings ?? null,
    params: job.params,
    inputs: context.inputs,
    directory,
    limits: { maxAudioSeconds: options.limits.maxAudioSeconds },
    steps: steps?.kept,
    offers: context.offers,
  }
  const { host, ...kept } = composition ? {} : await checkpoint(directory, '')
  return await spans.run((trace, onStage) => {
    const run: RunOptions = {
      signal: context.signal,
      checkpoint: host,
      steps: steps ?? spans.unkeptSteps,
      onProgress: (made) => {
        // Steps, including those of compositions, may run concurrently and have their own spans.
        if (!workflow.run && !composition) onStage(made.stage)
        context.onProgress(made)
      },
    }
    const traced: WorkOrder = { trace, ...order, ...kept }
    if (!composition) return runner.run(traced, run)
    // No step may take longer than the job.
    const defaults = { ...options, limits: { ...options.limits, jobTimeoutMs: context.policy.timeoutMs } }
    const ofStep = (step: Step) => policyOf(step.workflow.id, step.policy, defaults)
    const ports = { runner, logger: context.logger, policy: ofStep, checkpoint }
    return runSteps(workflow, composition, traced, ports, run)
  })
}
