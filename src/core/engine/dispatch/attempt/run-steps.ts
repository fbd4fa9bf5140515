import { hash } from 'node:crypto'
import { basename } from 'node:path'
import { internalError, StemworkError } from '../../errors.js'
import { jobError } from '../../job/failure.js'
import type { Logger } from '../../ports/logger.js'
import type { InputFile, OutputFile, Runner, RunOptions, WorkOrder, WorkResult } from '../../ports/runner.js'
import { StepRun } from '../../runner/execute-steps.js'
import { runInline } from '../../runner/inline-runner.js'
import { stageProgress } from '../../runner/stage-progress.js'
import type { StepContext, StepFile } from '../../workflow/steps.js'
import type { Step, Steps, Workflow } from '../../workflow/workflow.js'
import type { Policy } from './policy.js'

interface StepPorts {
  runner: Runner
  logger: Logger
  policy(step: Step): Policy
  /** Returns kept work of a step, and the port that keeps more. @param work identifies the step and its work */
  checkpoint?(
    directory: string,
    work: string,
  ): Promise<Pick<WorkOrder, 'checkpoint'> & { host?: RunOptions['checkpoint'] }>
}

/**
 * Runs the workflows of a composition one after another, each as a durable step with a separate order. A step that
 * fails or whose process dies is retried alone, by its policy, with the files of the other steps.
 *
 * @throws the runner's error for the failed step; the signal's reason
 */
export async function runSteps(
  workflow: Workflow,
  { steps, outputs }: Steps,
  order: WorkOrder,
  ports: StepPorts,
  { signal, onProgress, steps: host }: RunOptions,
): Promise<WorkResult> {
  const { jobId, directory, limits, trace, steps: kept = [] } = order
  const params = workflow.params.parse(order.params) as Record<string, unknown>
  const progress = stageProgress(workflow.stages, onProgress)
  const nothing = () => {}
  const shared = { jobId, directory, limits, trace, signal, detail: nothing, report: nothing }
  const run = new StepRun({ ...shared, version: '', kept, host })
  const results = new Map<string, WorkResult>()
  const failed = new Map<string, Error>()

  for (const [index, step] of steps.entries()) {
    signal.throwIfAborted()
    const report = (fraction: number) => progress.report(index, fraction)
    report(0)
    const missing = Object.values(step.inputs).find(({ step: from }) => from !== undefined && failed.has(from))?.step
    if (missing !== undefined) {
      failed.set(step.name, needsFailed(missing, failed.get(missing)))
    } else {
      try {
        results.set(step.name, await runStep(run, step, orderOf(step, order, params, results), ports, report))
      } catch (error) {
        signal.throwIfAborted()
        if (!step.mayFail) throw error
        const message = 'A step failed; the job continues without it.'
        ports.logger.warn({ jobId, step: step.name, err: error }, message)
        failed.set(step.name, error instanceof Error ? error : internalError(error))
      }
    }
    report(1)
  }

  const files = finalFiles(outputs, results, workflow.outputs(params))
  const [firstFailure] = failed.values()
  if (firstFailure !== undefined && Object.keys(files).length === 0) throw firstFailure
  return { outputs: files, details: detailsOf(results, failed) }
}

/** Without a folder, because each try of a step has a new one. */
type StepOrder = Omit<WorkOrder, 'directory'>

/** The kept value of a step: the result of its workflow, with its files as step files. */
interface StepValue {
  details: WorkResult['details']
  outputs: Record<string, Omit<OutputFile, 'path'> & { file: StepFile }>
}

async function runStep(
  run: StepRun,
  step: Step,
  order: StepOrder,
  { runner, logger, policy: policyOf, checkpoint }: StepPorts,
  report: (fraction: number) => void,
): Promise<WorkResult> {
  const { jobId } = order
  const policy = policyOf(step)
  const version = versionOf(order)
  const work = async ({ directory, signal, file }: StepContext): Promise<StepValue> => {
    const { host, checkpoint: kept } = (await checkpoint?.(directory, `${step.name}-${version}`)) ?? {}
    const options: RunOptions = { signal, checkpoint: host, onProgress: ({ progress }) => report(progress) }
    const own = { ...order, directory, checkpoint: kept }
    // A workflow without a module may not be registered with the engine, so only the step knows it.
    const { details, outputs } = await (order.module === null
      ? runInline(async () => step.workflow, own, options, logger)
      : runner.run(own, options))
    const files = Object.entries(outputs).map(([name, { path, ...facts }]) => [
      name,
      { ...facts, file: file(basename(path)) },
    ])
    return { details, outputs: Object.fromEntries(files) }
  }
  const onRetry = (error: unknown, attempt: number, delayMs: number) => {
    const message = `Attempt ${attempt} of ${policy.maxAttempts} at a step failed; retrying.`
    logger.warn({ jobId, step: step.name, delayMs, err: error }, message)
  }
  const { details, outputs } = await run.do(step.name, work, { ...policy, version, onRetry })
  const files = Object.entries(outputs).map(([name, { file, ...facts }]) => [name, { ...facts, path: file.path }])
  return { details, outputs: Object.fromEntries(files) }
}

/** Version of a step, which changes with its work and its inputs, including outputs of earlier steps. */
function versionOf({ workflow, settings, params, inputs }: StepOrder): string {
  const sizes = Object.entries(inputs).map(([name, { bytes }]) => [name, bytes])
  const text = JSON.stringify([workflow, settings, params, sizes])
  return hash('sha256', text).slice(0, 32)
}

/** The outputs of the workflow whose steps succeeded. */
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

function orderOf(
  step: Step,
  { jobId, inputs: given, limits, trace }: WorkOrder,
  params: Record<string, unknown>,
  results: ReadonlyMap<string, WorkResult>,
): StepOrder {
  const inputs: Record<string, InputFile> = {}
  for (const [input, { step: from, name }] of Object.entries(step.inputs)) {
    const made = from === undefined ? undefined : results.get(from)?.outputs[name]
    const file = from === undefined ? given[name] : made && { ...made, name: made.downloadName ?? made.fileName }
    if (file) inputs[input] = { path: file.path, bytes: file.bytes, name: file.name }
  }
  const { id: workflow, module } = step.workflow
  const work = {
    workflow,
    module: module?.url ?? null,
    settings: module?.settings ?? null,
    params: step.params(params),
  }
  return { jobId, ...work, inputs, limits, trace }
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
