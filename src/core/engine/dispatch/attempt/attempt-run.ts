import type { JobRecord } from '../../job/job.js'
import type { EngineOptions } from '../../options.js'
import type { Logger } from '../../ports/logger.js'
import type {
  InputFile,
  KeptStep,
  RunCheckpoint,
  Runner,
  RunOptions,
  RunSteps,
  WorkOrder,
  WorkResult,
} from '../../ports/runner.js'
import type { Step, Workflow } from '../../workflow/workflow.js'
import type { AttemptSpans } from './attempt-spans.js'
import { type Policy, policyOf } from './policy.js'
import { runSteps } from './run-steps.js'

interface RunContext {
  job: JobRecord
  inputs: Record<string, InputFile>
  directory: string
  /** What earlier attempts kept. */
  kept: WorkOrder['checkpoint']
  checkpoint: RunCheckpoint
  /** Of a workflow that has steps. */
  steps?: RunSteps & { readonly kept: KeptStep[] }
  runner: Runner
  policy: Policy
  options: EngineOptions
  logger: Logger
  spans: AttemptSpans
  signal: AbortSignal
  onProgress: RunOptions['onProgress']
}

/** Runs the workflow on the inputs: as one order, or as one order per step. */
export function runWorkflow(
  workflow: Workflow,
  {
    job,
    inputs,
    directory,
    kept,
    checkpoint,
    steps,
    runner,
    policy,
    options,
    logger,
    spans,
    signal,
    onProgress,
  }: RunContext,
): Promise<WorkResult> {
  const { composition } = workflow
  const order: WorkOrder = {
    jobId: job.id,
    workflow: workflow.id,
    module: workflow.module?.url ?? null,
    settings: workflow.module?.settings ?? null,
    params: job.params,
    inputs,
    directory,
    limits: { maxAudioSeconds: options.limits.maxAudioSeconds },
    checkpoint: kept,
    steps: steps?.kept,
  }
  return spans.run((trace, onStage) => {
    const run: RunOptions = {
      signal,
      checkpoint,
      steps,
      onProgress: (made) => {
        onStage(made.stage)
        onProgress(made)
      },
    }
    const traced = { ...order, trace }
    if (!composition) return runner.run(traced, run)
    // No step may take longer than the job.
    const defaults = { ...options, limits: { ...options.limits, jobTimeoutMs: policy.timeoutMs } }
    const ofStep = (step: Step) => policyOf(step.workflow.id, step.policy, defaults)
    return runSteps(workflow, composition, traced, { runner, logger, policy: ofStep }, run)
  })
}
