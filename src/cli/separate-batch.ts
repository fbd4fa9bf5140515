import { mkdir, open, rename, stat } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { basename, dirname, join, parse } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { StemworkError } from '../core/engine/errors.js'
import { makeProcessFolder, removeDeadFolders } from '../core/engine/dispatch/attempt/process-folder.js'
import { silentLogger } from '../core/engine/ports/logger.js'
import type { Runner, WorkResult } from '../core/engine/ports/runner.js'
import { processRunner } from '../core/engine/runner/process-runner.js'
import { formatTable } from '../core/media/encode/output-format.js'
import { requireModel } from '../core/models/installed.js'
import { takeLock } from '../core/models/pull-lock.js'
import { readTags } from '../core/media/tags/read-tags.js'
import { type BatchInput, findInputs, GrowingFiles } from './batch-inputs.js'
import { BatchJournal, type Outputs, sha256 } from './batch-journal.js'
import { BatchProgress } from './batch-progress.js'
import { BatchReport } from './batch-report.js'
import { exitStatus, type Terminal } from './command.js'
import { foregroundOrder } from './foreground-run.js'
import { onInterruption } from './interruption.js'
import { makeFolder, removedAtExit, requireFile, requirePath } from './local-file.js'
import type { BatchRequest } from './separation-request.js'

/** Pause between two looks at the folders. A file that is the same at both is taken to be complete. */
const lookMs = 1000
/** Folder for the command's own files, in the folder of the results. */
const ownName = '.stemwork'
const workPrefix = 'work'
/** With these, every song would fail in the same way. */
export const setupCodes = ['MISSING_DEPENDENCY', 'MODEL_UNAVAILABLE', 'RUNNER_UNAVAILABLE', 'INVALID_OPTIONS']

/**
 * Separates the songs of files and folders, each once. What an earlier run has finished is skipped.
 *
 * @returns the exit status
 * @throws StemworkError for what keeps all songs from being separated
 */
export async function separateBatch(request: BatchRequest, json: boolean, terminal: Terminal): Promise<number> {
  for (const source of request.sources) if (!(await requirePath(source)).isDirectory()) await requireFile(source)
  if (request.settings.model !== undefined) await requireModel(request.settings.model)
  const progress = new BatchProgress(terminal.stderr)
  const report = new BatchReport(terminal, progress, json)
  const interruption = onInterruption((status) => process.exit(status))
  const ownFolder = join(request.folder, ownName)
  await makeFolder(request.folder)
  const lock = await takeLock(join(ownFolder, 'lock'))
  if (!lock) {
    throw new StemworkError(
      'INVALID_OPTIONS',
      `Another run is writing to ${request.folder}. Wait until it ends, or choose another folder.`,
    )
  }
  let batch: Batch | undefined
  try {
    await removeDeadFolders(ownFolder, workPrefix, silentLogger)
    batch = await Batch.open(request, ownFolder, report, progress)
    await (request.watch ? batch.follow(interruption.signal) : batch.once(interruption.signal))
  } catch (error) {
    progress.clear()
    if (interruption.status() === undefined) throw error
  } finally {
    await batch?.close()
    lock.close()
    interruption.release()
  }
  const status = interruption.status()
  report.end(status !== undefined)
  return status ?? (report.hasFailures ? exitStatus.failed : exitStatus.done)
}

class Batch {
  readonly #request: BatchRequest
  readonly #ownFolder: string
  readonly #journal: BatchJournal
  readonly #runner: Runner
  readonly #report: BatchReport
  readonly #progress: BatchProgress

  private constructor(
    request: BatchRequest,
    ownFolder: string,
    journal: BatchJournal,
    report: BatchReport,
    progress: BatchProgress,
  ) {
    this.#request = request
    this.#ownFolder = ownFolder
    this.#journal = journal
    this.#report = report
    this.#progress = progress
    const { workflow, jobs: slots } = request
    // The user waits for it, so it runs at this process's own priority.
    this.#runner = processRunner({ resolve: () => workflow, slots, niceness: getPriority() })
  }

  static async open(request: BatchRequest, ownFolder: string, report: BatchReport, progress: BatchProgress) {
    const { settings, stems, names } = request
    const options = JSON.stringify([settings.model, settings.format, settings.keepTags, stems, names.text])
    const journal = await BatchJournal.open(request.folder, ownFolder, options)
    return new Batch(request, ownFolder, journal, report, progress)
  }

  async once(signal: AbortSignal): Promise<void> {
    const { inputs, unreadable } = await this.#find()
    for (const { input, message } of unreadable) this.#report.failed(input, new Error(message))
    if (inputs.length === 0 && unreadable.length === 0)
      throw new StemworkError(
        'NOT_FOUND',
        `There are no audio or video files to separate in ${this.#request.sources.join(', ')}. Name files, or ` +
          'folders that contain them.',
      )
    await this.#separateAll(inputs, signal)
  }

  /** Runs until the signal fires. */
  async follow(signal: AbortSignal): Promise<void> {
    const growing = new GrowingFiles()
    this.#report.note('Waiting for files. Press Ctrl-C to stop.')
    for (;;) {
      const startedAt = performance.now()
      const { inputs } = await this.#find()
      const lookedMs = performance.now() - startedAt
      await this.#separateAll(growing.complete(inputs), signal)
      // Looking at a large or slow folder must not take all the time.
      await wait(Math.max(lookMs, 10 * lookedMs), undefined, { signal })
    }
  }

  async close(): Promise<void> {
    await this.#runner.close()
    await this.#journal.close()
  }

  #find() {
    return findInputs(this.#request.sources, {
      outputFolder: this.#request.folder,
      isResult: (path) => this.#journal.isResult(path),
      ffmpeg: this.#request.settings.decoders?.ffmpeg === true,
    })
  }

  async #separateAll(inputs: readonly BatchInput[], signal: AbortSignal): Promise<void> {
    const todo: BatchInput[] = []
    for (const input of inputs) {
      signal.throwIfAborted()
      const outputs = await this.#journal.finished(input)
      if (outputs) this.#report.skipped(input.shown, outputs)
      else todo.push(input)
    }
    if (todo.length === 0) return
    this.#progress.add(todo)
    const waiting = todo[Symbol.iterator]()
    const stop = new AbortController()
    const either = AbortSignal.any([signal, stop.signal])
    const worker = async () => {
      for (const input of waiting) {
        either.throwIfAborted()
        await this.#separateOne(input, either)
      }
    }
    const workers = Array.from({ length: this.#request.jobs }, () =>
      worker().catch((error: unknown) => {
        stop.abort(error)
        throw error
      }),
    )
    // All of them, because one that still runs writes files.
    const ended = await Promise.allSettled(workers)
    signal.throwIfAborted()
    if (ended.some(({ status }) => status === 'rejected')) throw stop.signal.reason
  }

  async #separateOne(input: BatchInput, signal: AbortSignal): Promise<void> {
    this.#progress.begin(input.shown, input.bytes)
    const startedAt = performance.now()
    try {
      const { result, outputs } = await this.#run(input, signal)
      this.#report.done(input.shown, outputs, result.details, performance.now() - startedAt)
    } catch (error) {
      signal.throwIfAborted()
      if (StemworkError.is(error) && setupCodes.includes(error.code)) throw error
      this.#report.failed(input.shown, error)
    }
  }

  async #run(input: BatchInput, signal: AbortSignal): Promise<{ result: WorkResult; outputs: Outputs }> {
    const { workflow, stems, settings, names } = this.#request
    const song = { tags: await readTags(input.path), file: parse(input.path).name, folder: input.folder }
    const ending = formatTable[settings.format ?? '16'].extension
    const { outputs, unclaimed } = this.#journal.reserve(input, (number) =>
      Object.fromEntries(
        stems.map((stem) => [stem, `${names.pathOf(song, stem)}${number === 0 ? '' : ` (${number + 1})`}.${ending}`]),
      ),
    )
    await requireUnused(unclaimed)
    await this.#journal.start(input, outputs)
    const unfinished = removedAtExit(await makeProcessFolder(this.#ownFolder, workPrefix))
    try {
      const hash = await sha256(input.path)
      const file = { path: input.path, bytes: input.bytes, name: basename(input.path) }
      const result = await this.#runner.run(
        foregroundOrder(workflow, { inputUrl: 'http://localhost/' }, file, unfinished.path),
        { signal, onProgress: ({ progress }) => this.#progress.show(input.shown, progress) },
      )
      signal.throwIfAborted()
      await requireUnchanged(input)
      const resultBytes = await publish(result, outputs)
      await this.#journal.finish(input, outputs, { sha256: hash, resultBytes })
      return { result, outputs }
    } finally {
      await unfinished.remove()
    }
  }
}

/** A file that this command has not made is never overwritten. */
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
