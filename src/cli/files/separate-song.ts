import { rename, rmdir } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { fetchInput } from '../../core/engine/fetch/fetch-input.js'
import { policyOf } from '../../core/engine/dispatch/attempt/policy.js'
import { runSteps } from '../../core/engine/dispatch/attempt/run-steps.js'
import { silentLogger } from '../../core/engine/ports/logger.js'
import type { InputFile, Runner, WorkProgress, WorkResult } from '../../core/engine/ports/runner.js'
import { resolveEngineOptions } from '../../core/engine/options.js'
import type { Step } from '../../core/engine/workflow/workflow.js'
import { nameInUrl } from '../../core/engine/job/download-name.js'
import { processRunner } from '../../core/engine/runner/process-runner.js'
import { requireModel } from '../../core/models/installed.js'
import { foregroundOrder } from './foreground-run.js'
import { makeFolder, refuseInput, requireFile, unfinishedFolder } from './local-file.js'
import { duration, type ProgressLine } from '../terminal/progress-line.js'
import type { SongRequest } from './separation-request.js'

const maxDownloadBytes = 8 * 1024 ** 3
/** No other job waits for a song on the command line, so it may take as long as Node's timers can run. */
const longestRunMs = 2 ** 31 - 1

export interface SeparationReport {
  input: string
  outputs: Record<string, string>
  /** Facts from the workflow: length, clipped samples, timings, model. */
  details: Record<string, unknown>
  /** Length of the audio. */
  seconds: number
  wallSeconds: number
  /** Seconds of audio for each second of work. */
  speed: number
}

/**
 * Separates one song into a folder.
 *
 * @throws StemworkError for errors that the user can correct; the signal's reason
 */
export async function separateSong(
  request: SongRequest,
  signal: AbortSignal,
  progress: ProgressLine,
): Promise<SeparationReport> {
  const startedAt = performance.now()
  const local = request.isUrl ? undefined : await requireFile(request.source)
  for (const model of request.models) await requireModel(model)
  const { workflow } = request
  const params = { ...request.params, inputUrl: request.isUrl ? request.source : 'http://localhost/' }
  if (local)
    for (const { fileName } of Object.values(workflow.outputs(params)))
      await refuseInput(local.path, join(request.folder, fileName))
  const firstMade = await makeFolder(request.folder)
  // In the folder of the results, so that a finished file only needs to be renamed.
  const unfinished = await unfinishedFolder(request.folder, '.unfinished-')
  // The user is waiting, so the work runs at this process's own priority.
  const runner = processRunner({ resolve: () => workflow, niceness: getPriority() })
  let outputs: Record<string, string> | undefined
  try {
    const input = local ?? (await download(request, join(unfinished.path, 'input'), signal, progress))
    signal.throwIfAborted()
    const order = foregroundOrder(workflow, params, input, unfinished.path)
    const onProgress = ({ progress: fraction }: WorkProgress) => progress.show('Separating', fraction)
    const result = workflow.composition
      ? await runSteps(workflow, workflow.composition, order, stepRunner(runner), { signal, onProgress })
      : await runner.run(order, { signal, onProgress })
    signal.throwIfAborted()
    outputs = await publish(result, request.folder)
    return reportOf(request, result, outputs, (performance.now() - startedAt) / 1000)
  } finally {
    await runner.close()
    await unfinished.remove()
    // A new folder is removed after a failure, unless it contains something else by now.
    if (!outputs && firstMade) await rmdir(request.folder).catch(() => undefined)
  }
}

function stepRunner(runner: Runner) {
  const options = resolveEngineOptions({ limits: { jobTimeoutMs: longestRunMs } })
  return { runner, logger: silentLogger, policy: (step: Step) => policyOf(step.workflow.id, step.policy, options) }
}

async function download(
  { source, allowPrivate }: SongRequest,
  path: string,
  signal: AbortSignal,
  progress: ProgressLine,
): Promise<InputFile> {
  progress.show('Downloading', 0)
  const { bytes } = await fetchInput(source, path, {
    signal,
    maxBytes: maxDownloadBytes,
    policy: { allowPrivate, detail: true },
  })
  return { path, bytes, name: nameInUrl(source) }
}

async function publish(result: WorkResult, folder: string): Promise<Record<string, string>> {
  const outputs: Record<string, string> = {}
  for (const [name, { path, fileName }] of Object.entries(result.outputs)) {
    outputs[name] = join(folder, fileName)
    await rename(path, outputs[name])
  }
  return outputs
}

function reportOf(
  { source }: SongRequest,
  { details }: WorkResult,
  outputs: Record<string, string>,
  wallSeconds: number,
): SeparationReport {
  // In a composed workflow, each step has its own details.
  const [first = details, ...later] = Object.values((details.steps ?? {}) as Record<string, WorkResult['details']>)
  const clippedSamples = [first, ...later].reduce((sum, each) => sum + Number(each.clippedSamples ?? 0), 0)
  const seconds = Number(first.seconds)
  return {
    input: source,
    outputs,
    seconds,
    wallSeconds: round(wallSeconds),
    speed: round(seconds / wallSeconds),
    details: { ...details, clippedSamples },
  }
}

/** The summary for a person. */
export function songSummary({ outputs, seconds, wallSeconds, speed, details }: SeparationReport): string {
  const clipped = Number(details.clippedSamples)
  const files = Object.values(outputs).map((path) => `${path}\n`)
  const warning =
    clipped > 0
      ? `${clipped} samples were too loud for an integer format and were clipped. --format 32f keeps them.\n`
      : ''
  const others = Array.isArray(details.warnings) ? details.warnings.map((text) => `${text}\n`) : []
  const hints = [details.runtimeHint, details.hint].flatMap((hint) => (typeof hint === 'string' ? [`${hint}\n`] : []))
  const time = `${duration(seconds)} of audio in ${duration(wallSeconds)} (${speed} x real time).\n`
  return `${files.join('')}${warning}${others.join('')}${time}${hints.join('')}`
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
