import { createWriteStream } from 'node:fs'
import { lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import {
  checkpointChain,
  claimCheckpointPrefix,
  jobCheckpointPrefix,
  keptInputKey,
  partKey,
} from '../../job/checkpoint-keys.js'
import type { JobRecord } from '../../job/job.js'
import { putCopy } from '../../ports/put-copy.js'
import type { InputFile, KeptPart, RunOptions, WorkOrder } from '../../ports/runner.js'
import { partName } from '../../runner/stage-checkpoint.js'
import type { SharedParts } from '../../engine-parts.js'

/** Delays between tries to store a part; the last one repeats. */
const retryDelaysMs = [1_000, 5_000, 30_000]
/** How long an attempt waits for its last part: at shutdown, and when it is preempted. */
const longestHandBackMs = 5_000
const longestGivingWayMs = 10_000
/** Longest time to store downloads after a run. */
const longestKeepMs = 60_000
/** Shared by all attempts: creating its stack would cost as much as the rest of a short job's end. */
const runEnded = new Error('The run has ended.')

interface CheckpointPorts extends Pick<SharedParts, 'blobs' | 'options' | 'logger'> {
  /** Called for each stored part: the work up to it is never repeated. */
  onStored(): void
  /** Called when a run keeps no further parts: an interruption costs what it does from now on. */
  onStopped(): void
}

/** A file in the folder of a run. */
interface Part {
  directory: string
  work: string
  part: number
}

/**
 * Work that one attempt keeps for the next, and that earlier attempts kept for it, in the blob store, where every
 * worker finds it. Nothing here fails the job: work that cannot be stored or read is repeated.
 */
export class AttemptCheckpoint {
  readonly #job: JobRecord
  readonly #ports: CheckpointPorts
  /** Created on demand: most attempts keep nothing, and a signal would cost more than the rest of their end. */
  #handBack: AbortController | undefined
  #ended: AbortController | undefined
  #hasEnded = false
  readonly #prefix: string
  /** Downloaded inputs that exist nowhere else, by the index of the workflow's input. */
  readonly #downloads = new Map<number, string>()
  #keptInputs = new Map<number, string>()
  /** Keys of parts, by unit of work: this attempt's parts continue those of earlier ones. */
  #chains = new Map<string, string[]>()
  /** Whether the blob store may contain kept work of this job. */
  #hasKept: boolean
  #isResumed = false
  /** Whether a run keeps its work in parts. */
  #hasParts = false
  #storing: Promise<void> = Promise.resolve()
  #stored = () => {}

  constructor(job: JobRecord, ports: CheckpointPorts) {
    this.#job = job
    this.#ports = ports
    this.#prefix = claimCheckpointPrefix(job)
    this.#hasKept =
      (this.isOn && job.token > 1) ||
      job.steps.some(({ files, valueKey }) => valueKey !== undefined || Object.keys(files).length > 0)
  }

  /** Whether this deployment keeps checkpoints. A store in one process would lose them with the process. */
  get isOn(): boolean {
    const { blobs, options } = this.#ports
    return options.checkpoints.enabled && blobs.traits.scope === 'shared'
  }

  /** Finds the work that earlier attempts kept. @throws the blob store's error; the signal's reason. */
  async find(signal: AbortSignal): Promise<void> {
    if (!this.#hasKept) return
    const keys: string[] = []
    for await (const { key } of this.#ports.blobs.list(jobCheckpointPrefix(this.#job.id))) {
      signal.throwIfAborted()
      keys.push(key)
    }
    const { chains, inputs } = checkpointChain(keys)
    this.#chains = chains
    this.#isResumed = this.#hasParts = chains.size > 0
    this.#keptInputs = inputs
    this.#hasKept = keys.length > 0
  }

  /** Fetches the input that an earlier attempt downloaded; `undefined` if none has kept it. @throws as `find` does */
  async fetchInput(index: number, path: string, signal: AbortSignal): Promise<{ bytes: number } | undefined> {
    const key = this.#keptInputs.get(index)
    const bytes = key === undefined ? undefined : await this.#fetch(key, path, signal)
    return bytes === undefined ? undefined : { bytes }
  }

  /** Call when the job's steps keep files beside the parts. */
  noteStepFiles(): void {
    this.#hasKept = true
  }

  /** Notes a download that is to be kept with the first part. */
  noteDownload(index: number, file: InputFile): void {
    this.#downloads.set(index, file.path)
  }

  /**
   * The `checkpoint` of a run's order.
   *
   * @param directory the run's folder
   * @param work as in `partKey`
   * @throws as `find` does
   */
  async order(directory: string, signal: AbortSignal, work = ''): Promise<WorkOrder['checkpoint']> {
    if (!this.isOn) return undefined
    const { afterMs, everyMs, maxBytes } = this.#ports.options.checkpoints
    const parts: KeptPart[] = []
    for (const [part, key] of this.#chains.get(work)?.entries() ?? []) {
      const kept = await this.#partFile(key, join(directory, `earlier-${partName(part)}`), signal)
      // A missing part ends the chain: the rest would not fit.
      if (!kept) break
      parts.push(kept)
    }
    return { parts, afterMs, everyMs, maxBytes }
  }

  /** Whether earlier attempts have kept work within the run. */
  get isResumed(): boolean {
    return this.#isResumed
  }

  /** The host's side of a run's checkpoint. @param directory and `work` as for `order` */
  of(directory: string, work = ''): NonNullable<RunOptions['checkpoint']> {
    const handBack = (this.#handBack ??= new AbortController()).signal
    const store = (part: number) => (this.#storing = this.#storeUntilEnd({ directory, work, part }, handBack.aborted))
    return { store, stopped: () => this.#stopped(), handBack }
  }

  /**
   * Asks the run to keep its work; resolves when the work is stored, or at once if the run has kept no part so far.
   *
   * @param isShutdown whether the process ends soon; otherwise, a claimed job waits for the slot
   */
  async beforeHandBack(isShutdown: boolean): Promise<void> {
    if (!this.#hasParts || this.#hasEnded) return
    const stored = new Promise<void>((resolve) => (this.#stored = resolve))
    this.#handBack?.abort()
    const { leaseMs } = this.#ports.options.dispatch
    const maxMs = Math.min(isShutdown ? longestHandBackMs : longestGivingWayMs, leaseMs / 3)
    await Promise.race([stored, delay(maxMs, undefined, { signal: this.#untilEnd }).catch(() => {})])
  }

  /** Call when the run has ended: nothing more is stored. */
  async end(): Promise<void> {
    this.#hasEnded = true
    this.#ended?.abort(runEnded)
    await this.#storing
  }

  get #untilEnd(): AbortSignal {
    return (this.#ended ??= new AbortController()).signal
  }

  /** Keeps the downloads of a suspended job, or of a failed one that may be retried: their URLs may stop working. */
  async keepDownloads(): Promise<void> {
    if (!this.isOn) return
    try {
      await this.#storeDownloads(AbortSignal.timeout(longestKeepMs))
    } catch (error) {
      this.#warn('A downloaded input could not be kept; a retry downloads it again.', error)
    }
  }

  /** Removes all work that the job's attempts kept. Call when the job has finally ended. */
  async discard(): Promise<void> {
    if (!this.#hasKept) return
    await this.#ports.blobs
      .deletePrefix(jobCheckpointPrefix(this.#job.id), { app: this.#job.app })
      .catch((error: unknown) => this.#warn('A checkpoint could not be removed; the sweep will do it.', error))
  }

  #stopped(): void {
    const { logger, options, onStopped } = this.#ports
    onStopped()
    logger.warn(
      { jobId: this.#job.id, token: this.#job.token },
      'The job keeps no more of its work: an interruption would cost what it does from now on. Either its checkpoint ' +
        `has reached ${options.checkpoints.maxBytes} bytes (checkpoints.maxBytes), or the disk is nearly full.`,
    )
  }

  /** @param isLast whether the part completes the hand-back; an upload that began earlier lacks the latest work */
  async #storeUntilEnd(part: Part, isLast: boolean): Promise<void> {
    for (let tries = 0; !this.#hasEnded; tries++) {
      try {
        await this.#storeOnce(part)
        this.#ports.onStored()
        if (isLast) this.#stored()
        return
      } catch (error) {
        if (this.#hasEnded) return
        this.#warn('A checkpoint part could not be stored; the job continues, and storing is tried again.', error)
        await delay(retryDelaysMs[Math.min(tries, retryDelaysMs.length - 1)], undefined, {
          signal: this.#untilEnd,
        }).catch(() => {})
      }
    }
  }

  async #storeOnce({ directory, work, part }: Part): Promise<void> {
    const { blobs } = this.#ports
    const options = { signal: this.#untilEnd, app: this.#job.app }
    this.#hasKept = this.#hasParts = true
    // First, because the parts are only valid for exactly these files.
    await this.#storeDownloads(this.#untilEnd)
    const path = join(directory, partName(part))
    // lstat: a link could store a file from outside the run.
    if (!(await lstat(path)).isFile()) throw new Error(`${path} is not a regular file`)
    const key = partKey(this.#prefix, part, work)
    if (blobs.putFile) await blobs.putFile(key, path, options)
    else {
      await putCopy(blobs, key, path, options)
      await rm(path, { force: true })
    }
    this.#chains.set(work, [...(this.#chains.get(work) ?? []).slice(0, part), key])
  }

  async #storeDownloads(signal: AbortSignal): Promise<void> {
    for (const [index, path] of this.#downloads) {
      this.#hasKept = true
      const options = { signal, app: this.#job.app }
      await putCopy(this.#ports.blobs, keptInputKey(this.#prefix, index), path, options)
      this.#downloads.delete(index)
    }
  }

  /** Fetches a part, or uses the store's own file: parts are only read, up to their known length. */
  async #partFile(key: string, path: string, signal: AbortSignal): Promise<KeptPart | undefined> {
    const { blobs } = this.#ports
    if (blobs.localFile) return await blobs.localFile(key)
    const bytes = await this.#fetch(key, path, signal)
    return bytes === undefined ? undefined : { path, bytes }
  }

  async #fetch(key: string, path: string, signal: AbortSignal): Promise<number | undefined> {
    const blob = await this.#ports.blobs.get(key, { signal, app: this.#job.app })
    if (!blob) return undefined
    await rm(path, { force: true })
    const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
    await pipeline(blob.body, file, { signal })
    return file.bytesWritten
  }

  #warn(message: string, error: unknown): void {
    this.#ports.logger.warn({ jobId: this.#job.id, token: this.#job.token, err: error }, message)
  }
}
