import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { internalError, StemworkError } from '../../errors.js'
import { jobError } from '../../job/failure.js'
import type { Logger } from '../../ports/logger.js'
import type { InputFile, OutputFile, Runner, RunOptions, WorkOrder, WorkResult } from '../../ports/runner.js'
import { runInline } from '../../runner/inline-runner.js'
import { stageProgress } from '../../runner/stage-progress.js'
import type { Step, Steps, Workflow } from '../../workflow/workflow.js'
import type { Policy } from './policy.js'
import { StepsCheckpoint } from './steps-checkpoint.js'

/**
 * Runs the steps of a composed workflow one after another, each as its own order. A step that fails or whose process
 * dies is retried on its own, by its policy, with the files of the other steps. Steps that earlier attempts finished do
 * not run again.
 *
 * @throws as the runner does for the step that failed; the signal's reason
 */
export async function runSteps(
  workflow: Workflow,
  { steps, outputs }: Steps,
  order: WorkOrder,
  { runner, logger, policy }: { runner: Runner; logger: Logger; policy: (step: Step) => Policy },
  { signal, onProgress, checkpoint: host }: RunOptions,
): Promise<WorkResult> {
  const checkpoint = await StepsCheckpoint.open(order, host)
  const params = workflow.params.parse(order.params) as Record<string, unknown>
  const progress = stageProgress(workflow.stages, onProgress)
  const results = new Map<string, WorkResult>()
  const failed = new Map<string, Error>()

  for (const [index, step] of steps.entries()) {
    signal.throwIfAborted()
    progress.report(index, 0)
    const missing = Object.values(step.inputs).find(({ step: from }) => from !== undefined && failed.has(from))?.step
    if (missing !== undefined) {
      failed.set(step.name, needsFailed(missing, failed.get(missing)))
    } else {
      try {
        const stepOrder = await prepared(step, order, params, results)
        const report = (fraction: number) => progress.report(index, fraction)
        const finished = await checkpoint.finished(step, stepOrder)
        const result =
          finished ??
          (await tried(step, stepOrder, { runner, logger, checkpoint, policy: policy(step) }, signal, report))
        results.set(step.name, result)
        if (!finished) await checkpoint.keep(step, stepOrder, result)
      } catch (error) {
        signal.throwIfAborted()
        if (!step.mayFail) throw error
        logger.warn({ jobId: order.jobId, step: step.name, err: error }, 'A step failed; the job goes on without it.')
        failed.set(step.name, error instanceof Error ? error : internalError(error))
      }
    }
    progress.report(index, 1)
  }

  const files = finalFiles(outputs, results, workflow.outputs(params))
  const [firstFailure] = failed.values()
  if (firstFailure !== undefined && Object.keys(files).length === 0) throw firstFailure
  return { outputs: files, details: detailsOf(results, failed) }
}

/** The outputs of the workflow, as far as the steps that make them succeeded. */
function finalFiles(
  outputs: Steps['outputs'],
  results: ReadonlyMap<string, WorkResult>,
  declared: ReturnType<Workflow['outputs']>,
): Record<string, OutputFile> {
  const files: Record<string, OutputFile> = {}
  for (const [output, { step, name }] of Object.entries(outputs)) {
    const file = results.get(step)?.outputs[name]
    if (file) files[output] = { ...file, fileName: declared[output]?.fileName ?? file.fileName }
  }
  return files
}

/** The order of a step, with a folder of its own. */
async function prepared(
  step: Step,
  order: WorkOrder,
  params: Record<string, unknown>,
  results: ReadonlyMap<string, WorkResult>,
): Promise<WorkOrder> {
  const inputs: Record<string, InputFile> = {}
  for (const [input, { step: from, name }] of Object.entries(step.inputs)) {
    const made = from === undefined ? undefined : results.get(from)?.outputs[name]
    const file = from === undefined ? order.inputs[name] : made && { ...made, name: made.downloadName ?? made.fileName }
    if (file) inputs[input] = { path: file.path, bytes: file.bytes, name: file.name }
  }
  const { workflow } = step
  return {
    jobId: order.jobId,
    workflow: workflow.id,
    module: workflow.module?.url ?? null,
    settings: workflow.module?.settings ?? null,
    params: step.params(params),
    inputs,
    directory: join(order.directory, `step-${step.name}`),
    limits: order.limits,
    trace: order.trace,
  }
}

async function tried(
  step: Step,
  plain: WorkOrder,
  {
    runner,
    logger,
    checkpoint,
    policy,
  }: { runner: Runner; logger: Logger; checkpoint: StepsCheckpoint; policy: Policy },
  signal: AbortSignal,
  report: (fraction: number) => void,
): Promise<WorkResult> {
  const { order, checkpoint: kept } = checkpoint.of(step, plain)
  for (let attempt = 1; ; attempt++) {
    // Leftovers of an earlier attempt must not look like results of this one.
    await rm(order.directory, { recursive: true, force: true })
    await mkdir(order.directory, { recursive: true })
    try {
      return await withTimeLimit(step, policy, signal, (limited) => {
        const onProgress = ({ progress }: { progress: number }) => report(progress)
        const options = { signal: limited, checkpoint: kept, onProgress }
        // A workflow without a module may not be registered with the engine, so only the step knows it.
        return order.module === null
          ? runInline(async () => step.workflow, order, options, logger)
          : runner.run(order, options)
      })
    } catch (error) {
      signal.throwIfAborted()
      if (attempt >= policy.maxAttempts || !policy.isRetried(error)) throw error
      const delayMs = policy.delayMs(attempt)
      const message = `Attempt ${attempt} of ${policy.maxAttempts} at a step failed; retrying.`
      logger.warn({ jobId: order.jobId, step: step.name, delayMs, err: error }, message)
      await delay(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}

async function withTimeLimit<Result>(
  { name }: Step,
  { timeoutMs }: Policy,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController()
  const message = `The step "${name}" took longer than its limit of ${timeoutMs / 1000} seconds. Send a shorter file.`
  const timer = setTimeout(() => limit.abort(new StemworkError('TIMEOUT', message)), timeoutMs)
  try {
    return await work(AbortSignal.any([signal, limit.signal]))
  } finally {
    clearTimeout(timer)
  }
}

function needsFailed(step: string, cause: unknown): StemworkError {
  const { code, reason } = jobError(cause)
  const options = { reason: reason === null ? undefined : (reason as StemworkError['reason']), cause }
  return new StemworkError(code, `It was not run: it needs the step "${step}", which failed.`, options)
}

/** The details of each step under its name, and all warnings together. */
function detailsOf(results: ReadonlyMap<string, WorkResult>, failed: ReadonlyMap<string, unknown>) {
  const warnings = [...results].flatMap(([step, { details }]) =>
    Array.isArray(details.warnings) ? details.warnings.map((text) => `${step}: ${String(text)}`) : [],
  )
  return {
    steps: Object.fromEntries([...results].map(([step, { details }]) => [step, details])),
    ...(warnings.length > 0 ? { warnings } : {}),
    ...(failed.size > 0
      ? { failed: Object.fromEntries([...failed].map(([step, error]) => [step, jobError(error)])) }
      : {}),
  }
}
