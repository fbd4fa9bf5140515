import { join } from 'node:path'
import { internalError, StemworkError } from '../errors.js'
import { readableError } from '../job/error-text.js'
import { downloadName as safeDownloadName } from '../job/download-name.js'
import type { OutputFile, RunOptions, WorkOrder, WorkResult } from '../ports/runner.js'
import type { Workflow } from '../workflow/workflow.js'
import { type StepClock, StepRun } from './execute-steps.js'
import { factsOf, outputFile } from './run-folder.js'
import { noCheckpoint, stageCheckpoint } from './stage-checkpoint.js'
import { stageProgress } from './stage-progress.js'
import { publishFiles } from './step-files.js'

/**
 * Runs the stages of a workflow one after another and collects their files. Progress covers all stages and never
 * decreases.
 *
 * @throws the signal's reason if it fired between two stages or stopped a stage
 * @throws StemworkError of a stage; `INTERNAL_ERROR` for any other error and for a declared output that is missing
 */
export async function execute(
  workflow: Workflow,
  order: WorkOrder,
  run: RunOptions & { clock?: StepClock },
): Promise<WorkResult> {
  return await (workflow.run ? executeSteps(workflow.run, workflow, order, run) : executeStages(workflow, order, run))
}

async function executeStages(
  workflow: Workflow,
  order: WorkOrder,
  { signal, onProgress, checkpoint: host }: RunOptions,
): Promise<WorkResult> {
  const { outputs, details, ...shared } = startRun(workflow, order)
  const { jobId, inputs, directory, limits, trace } = order
  const progress = stageProgress(workflow.stages, onProgress)
  const checkpoint =
    order.checkpoint && host ? stageCheckpoint(directory, order.checkpoint, host) : noCheckpoint(directory)
  const facts = { jobId, inputs, directory, limits, signal, checkpoint, trace }

  for (const [index, stage] of workflow.stages.entries()) {
    signal.throwIfAborted()
    progress.report(index, 0)
    try {
      const report = (fraction: number) => progress.report(index, fraction)
      await stage.run({ ...facts, ...shared, outputs: Object.keys(outputs.declared), progress: report })
    } catch (error) {
      signal.throwIfAborted()
      throw runError(error, { stage: stage.name })
    }
    progress.report(index, 1)
  }
  signal.throwIfAborted()
  return { outputs: await outputs.collect(), details: details() }
}

async function executeSteps(
  run: NonNullable<Workflow['run']>,
  workflow: Workflow,
  order: WorkOrder,
  { signal, onProgress, steps: host, clock }: RunOptions & { clock?: StepClock },
): Promise<WorkResult> {
  const { outputs, details, params, outputPath, downloadName, detail } = startRun(workflow, order)
  const { jobId, directory, inputs, limits, trace } = order
  let highest = 0
  const report = (stage: string, progress: number) => {
    highest = Math.max(highest, Math.min(1, progress))
    onProgress({ stage, progress: highest })
  }
  const version = workflow.version ?? ''
  const ports = { host, clock, kept: order.steps ?? [], offers: order.offers }
  const step = new StepRun({ jobId, version, directory, limits, trace, signal, detail, report, ...ports })
  const ended = (async () => {
    const returned = await run({ jobId, params, inputs, limits, signal, trace, detail, downloadName, step })
    step.requireAllUsed()
    await publishFiles(returned, outputPath)
  })().finally(() => step.end())
  const suspension = await Promise.race([ended, step.suspended]).catch((error: unknown) => {
    signal.throwIfAborted()
    throw runError(error)
  })
  signal.throwIfAborted()
  return { outputs: suspension ? {} : await outputs.collect(), details: details(), ...suspension }
}

/** Params, paths and reports for a run of a workflow, and its outputs and details when it ends. */
function startRun(workflow: Workflow, order: WorkOrder) {
  const params = paramsOf(workflow, order)
  const declared = workflow.outputs(params)
  const details = new Map<string, unknown>()
  const downloadNames = new Map<string, string>()

  /**
   * The output's name has no dot, so `output.<name>.<file>` cannot collide; the file's extension tells encoders the
   * format.
   */
  const outputPath = (name: string) => {
    const declaration = Object.hasOwn(declared, name) ? declared[name] : undefined
    if (declaration && /^[A-Za-z0-9_-]+$/.test(name) && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(declaration.fileName))
      return join(order.directory, outputFile(name, declaration.fileName))
    const known = Object.keys(declared).join(', ') || 'none'
    throw new StemworkError(
      'INTERNAL_ERROR',
      `Workflow ${workflow.id} asked for the path of output ${JSON.stringify(name)}; it declares ${known}. Tell the ` +
        'operator the job id.',
    )
  }

  const collect = async () => {
    const outputs: [string, OutputFile][] = []
    for (const [name, { contentType, fileName, optional }] of Object.entries(declared)) {
      const path = outputPath(name)
      const stat = await factsOf(path)
      const downloadName = downloadNames.get(name)
      if (stat?.isFile()) outputs.push([name, { path, bytes: stat.size, contentType, fileName, downloadName }])
      else if (!optional || stat) {
        const message =
          `Workflow ${workflow.id} ended without its output "${name}". This is a bug in the workflow. Tell ` +
          'the operator the job id.'
        throw new StemworkError('INTERNAL_ERROR', message, { details: { output: name } })
      }
    }
    return Object.fromEntries(outputs)
  }

  return {
    params,
    outputs: { declared, collect },
    details: () => Object.fromEntries(details),
    outputPath,
    downloadName: (name: string, fileName: string) => void downloadNames.set(name, safeDownloadName(fileName)),
    detail(name: string, value: unknown) {
      // Throws here, inside the workflow, for a value that is not JSON: the end of its job could not be stored.
      JSON.stringify(value)
      details.set(name, value)
    },
  }
}

/**
 * The params with the schema's defaults and transforms applied: the order carries them as the client sent them, already
 * checked.
 */
function paramsOf(workflow: Workflow, order: WorkOrder): Record<string, unknown> {
  const checked = workflow.params.safeParse(order.params)
  if (!checked.success) throw internalError(checked.error)
  return checked.data as Record<string, unknown>
}

function runError(thrown: unknown, details?: Record<string, unknown>): StemworkError {
  const error = readableError(thrown)
  return StemworkError.is(error) ? error : internalError(error, details)
}
