import { mkdir, open, rename, stat } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { StemworkError } from '../../core/engine/errors.js'
import { makeProcessFolder, removeDeadFolders } from '../../core/engine/dispatch/attempt/process-folder.js'
import { silentLogger } from '../../core/engine/ports/logger.js'
import type { Runner, WorkResult } from '../../core/engine/ports/runner.js'
import { processRunner } from '../../core/engine/runner/process-runner.js'
import { formatTable } from '../../core/media/encode/output-format.js'
import { sha256 } from '../../core/models/file-hash.js'
import { requireModel } from '../../core/models/installed.js'
import { takeLock } from '../../core/models/pull-lock.js'
import { readTags } from '../../core/media/tags/read-tags.js'
import { type BatchInput, findInputs, GrowingFiles } from './batch-inputs.js'
import { BatchJournal, type Outputs } from './batch-journal.js'
import { BatchProgress } from './batch-progress.js'
import { batchReport, type BatchReport } from './batch-report.js'
import { exitStatus, type Terminal } from '../command.js'
import { foregroundOrder } from './foreground-run.js'
import { onInterruption } from '../terminal/interruption.js'
import { makeFolder, removedAtExit, requireFile, requirePath } from './local-file.js'
import { fileNames, type SongNames } from './result-names.js'
import type { BatchRequest } from './separation-request.js'

/** Pause between two scans of the folders. A file that is the same in both is taken to be complete. */
const lookMs = 1000
/** Folder for the command's own files, in the folder of the results. */
const ownName = '.stemwork'
const workPrefix = 'work'
/** With these, every song would fail in the same way. */
export const setupCodes = ['MISSING_DEPENDENCY', 'MODEL_UNAVAILABLE', 'RUNNER_UNAVAILABLE', 'INVALID_OPTIONS']

/**
 * Separates the songs of files and folders, each once. Skips those that an earlier run has finished.
 *
 * @returns the exit status
 * @throws StemworkError for errors that affect all songs
 */
export async function separateBatch(request: BatchRequest, json: boolean, terminal: Terminal): Promise<number> {
  for (const source of request.sources) {
    const found = await requirePath(source)
    // An unreadable file fails alone, as one song.
    if (!found.isDirectory() && !found.isFile()) await requireFile(source)
  }
  if (request.settings.model !== undefined) await requireModel(request.settings.model)
  const progress = new BatchProgress(terminal.stderr)
  const report = batchReport(terminal, progress, json)
  const interruption = onInterruption((status) => process.exit(status))
  const ownFolder = join(request.folder, ownName)
  await makeFolder(request.folder)
  const lock = await takeLock(join(ownFolder, 'lock'))
  if (!lock) {
    const message = `Another run is writing to ${request.folder}. Wait until it ends, or choose another folder.`
    throw new StemworkError('CONFLICT', message)
  }
  let batch: Batch | undefined
  try {
    await removeDeadFolders(ownFolder, workPrefix, silentLogger)
    batch = await openBatch({ request, ownFolder, report, progress })
    await (request.watch ? follow : once)(batch, interruption.signal)
  } catch (error) {
    progress.clear()
    if (interruption.status() === undefined) throw error
  } finally {
    await batch?.runner.close()
    await batch?.journal.close()
    lock.close()
    interruption.release()
  }
  const status = interruption.status()
  report.end(status !== undefined)
  return status ?? (report.hasFailures() ? exitStatus.failed : exitStatus.done)
}

interface Batch {
  request: BatchRequest
  ownFolder: string
  journal: BatchJournal
  runner: Runner
  report: BatchReport
  progress: BatchProgress
}

async function openBatch(parts: Omit<Batch, 'journal' | 'runner'>): Promise<Batch> {
  const { folder, workflow, jobs: slots, settings, stems, names } = parts.request
  const options = JSON.stringify([settings.model, settings.format, settings.keepTags, stems, names.text])
  const journal = await BatchJournal.open(folder, parts.ownFolder, options)
  // The user is waiting, so the work runs at this process's own priority.
  return { ...parts, journal, runner: processRunner({ resolve: () => workflow, slots, niceness: getPriority() }) }
}

async function once(batch: Batch, signal: AbortSignal): Promise<void> {
  const { inputs, unreadable } = await find(batch)
  for (const { input, message } of unreadable) batch.report.failed(input, new Error(message))
  if (inputs.length === 0 && unreadable.length === 0)
    throw new StemworkError(
      'NOT_FOUND',
      `There are no audio or video files to separate in ${batch.request.sources.join(', ')}. Name files, or ` +
        'folders that contain them.',
    )
  await separateAll(batch, inputs, inputs, signal)
}

/** Runs until the signal fires. */
async function follow(batch: Batch, signal: AbortSignal): Promise<void> {
  const growing = new GrowingFiles()
  batch.report.note('Waiting for files. Press Ctrl-C to stop.')
  for (;;) {
    const startedAt = performance.now()
    const { inputs } = await find(batch)
    const lookedMs = performance.now() - startedAt
    await separateAll(batch, growing.complete(inputs), inputs, signal)
    // Scanning a large or slow folder must not take all the time.
    await wait(Math.max(lookMs, 10 * lookedMs), undefined, { signal })
  }
}

function find(batch: Batch) {
  return findInputs(batch.request.sources, {
    outputFolder: batch.request.folder,
    isResult: (path) => batch.journal.isResult(path),
    ffmpeg: batch.request.settings.decoders?.ffmpeg === true,
  })
}

/** @param known all that were found, for names that tell them apart */
async function separateAll(
  batch: Batch,
  inputs: readonly BatchInput[],
  known: readonly BatchInput[],
  signal: AbortSignal,
): Promise<void> {
  const todo: BatchInput[] = []
  for (const input of inputs) {
    signal.throwIfAborted()
    const outputs = await batch.journal.finished(input)
    if (outputs) batch.report.skipped(input.shown, outputs)
    else todo.push(input)
  }
  if (todo.length === 0) return
  batch.progress.add(todo)
  const files = fileNames(known, batch.request.names)
  const waiting = todo[Symbol.iterator]()
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  const worker = async () => {
    for (const input of waiting) {
      either.throwIfAborted()
      await separateOne(batch, { ...input, file: files.get(input.path) ?? '' }, either)
    }
  }
  const workers = Array.from({ length: batch.request.jobs }, () =>
    worker().catch((error: unknown) => {
      stop.abort(error)
      throw error
    }),
  )
  // Waits for all workers, because a running one writes files.
  const ended = await Promise.allSettled(workers)
  signal.throwIfAborted()
  if (ended.some(({ status }) => status === 'rejected')) throw stop.signal.reason
}

type NamedInput = BatchInput & Pick<SongNames, 'file'>

async function separateOne(batch: Batch, input: NamedInput, signal: AbortSignal): Promise<void> {
  batch.progress.begin(input.shown, input.bytes)
  const startedAt = performance.now()
  try {
    const { result, outputs } = await run(batch, input, signal)
    batch.report.done(input.shown, outputs, result.details, performance.now() - startedAt)
  } catch (error) {
    signal.throwIfAborted()
    if (StemworkError.is(error) && setupCodes.includes(error.code)) throw error
    batch.report.failed(input.shown, error)
  }
}

async function run(
  batch: Batch,
  input: NamedInput,
  signal: AbortSignal,
): Promise<{ result: WorkResult; outputs: Outputs }> {
  const { workflow, stems, settings, names } = batch.request
  const song = { tags: await readTags(input.path), file: input.file, folder: input.folder }
  const ending = formatTable[settings.format ?? '16'].extension
  const { outputs, unclaimed } = batch.journal.reserve(input, (number) =>
    Object.fromEntries(
      stems.map((stem) => [stem, `${names.pathOf(song, stem)}${number === 0 ? '' : ` (${number + 1})`}.${ending}`]),
    ),
  )
  await requireUnused(unclaimed)
  await batch.journal.start(input, outputs)
  const unfinished = removedAtExit(await makeProcessFolder(batch.ownFolder, workPrefix))
  try {
    const hash = await sha256(input.path)
    const file = { path: input.path, bytes: input.bytes, name: basename(input.path) }
    const result = await batch.runner.run(
      foregroundOrder(workflow, { inputUrl: 'http://localhost/' }, file, unfinished.path),
      { signal, onProgress: ({ progress }) => batch.progress.show(input.shown, progress) },
    )
    signal.throwIfAborted()
    await requireUnchanged(input)
    const resultBytes = await publish(result, outputs)
    await batch.journal.finish(input, outputs, { sha256: hash, resultBytes })
    return { result, outputs }
  } finally {
    await unfinished.remove()
  }
}

/** Refuses to overwrite a file that this command did not create. */
async function requireUnused(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    if ((await stat(path).catch(() => undefined)) === undefined) continue
    throw new StemworkError(
      'ALREADY_EXISTS',
      `${path} already exists and was not created by this command. Move it, or choose another --name or --output.`,
    )
  }
}

async function requireUnchanged({ path, bytes, modifiedAt }: BatchInput): Promise<void> {
  const now = await stat(path).catch(() => undefined)
  if (now?.size === bytes && now.mtimeMs === modifiedAt) return
  throw new StemworkError(
    'BAD_INPUT',
    'The file changed while it was being read. Run the command again when the file is complete, or use --watch, ' +
      'which waits for that.',
  )
}

/** Gives the results their names, once they are complete and on disk. */
async function publish(result: WorkResult, outputs: Outputs): Promise<Record<string, number>> {
  const resultBytes: Record<string, number> = {}
  for (const [stem, target] of Object.entries(outputs)) {
    const made = result.outputs[stem]
    if (!made) throw new Error(`the workflow created no output "${stem}"`)
    await mkdir(dirname(target), { recursive: true })
    const file = await open(made.path, 'r+')
    await file.sync()
    await file.close()
    await rename(made.path, target)
    resultBytes[stem] = made.bytes
  }
  return resultBytes
}
