import { parseResultKey, peaksKey, resultsPrefix, uploadsPrefix } from '../job/blob-keys.js'
import { checkpointsPrefix, jobOfCheckpoint } from '../job/checkpoint-keys.js'
import { isTerminal, type JobRecord } from '../job/job.js'
import { keepsWork } from '../job/retry.js'
import type { SweepPorts } from './sweep.js'
import { beginFilePass } from './deployment-marker.js'
import { isUploadInUse } from './uploads.js'

export interface FileSweepOptions {
  /** A pass is made only if none was begun, by any process, in this time. Default: 0. */
  everyMs?: number
  /** Remove orphans also when they are most of the files. Default: false, for then the job store may be the wrong one. */
  allowMassRemoval?: boolean
}

export interface FileSweepReport {
  uploads: number
  orphans: number
}

/** From so many files on, orphans that are more than half of them are left alone. */
const fewFiles = 20

/** Looks at every file, of which nothing is urgent, and removes those that belong to nothing. */
export class FileSweep {
  readonly #ports: SweepPorts
  #stopped = false
  #problem: string | undefined

  constructor(ports: SweepPorts) {
    this.#ports = ports
  }

  /** Why the last pass that this process made left all orphans where they are, in words for an operator. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Ends the pass under way after the file that it is at. */
  stop(): void {
    this.#stopped = true
  }

  async run({ everyMs = 0, allowMassRemoval = false }: FileSweepOptions = {}): Promise<FileSweepReport> {
    const report: FileSweepReport = { uploads: 0, orphans: 0 }
    try {
      const pass = await beginFilePass(this.#ports, everyMs)
      if (!pass) return report
      this.#problem = pass.isOwn ? undefined : pass.problem
      if (!pass.isOwn) return report
      report.uploads = await this.#removeUnusedUploads()
      report.orphans = await this.#removeOrphans(allowMassRemoval)
      report.orphans += await this.#removeCheckpoints()
    } catch (error) {
      this.#ports.logger.warn({ err: error }, 'The sweep of files did not come to its end; the next one does it again.')
    }
    return report
  }

  async #removeUnusedUploads(): Promise<number> {
    const { blobs, jobs, options } = this.#ports
    const before = Date.now() - options.retention.unusedUploadsMs
    let removed = 0
    for await (const { key, modifiedAt } of blobs.list(uploadsPrefix)) {
      if (this.#stopped) break
      if (modifiedAt < before && !(await isUploadInUse(key, jobs))) removed += await this.#remove(key)
    }
    return removed
  }

  /** Checkpoints of jobs that are gone, or have ended and are not kept for a retry. */
  async #removeCheckpoints(): Promise<number> {
    const { blobs, jobs, options } = this.#ports
    const before = Date.now() - options.retention.orphansMs
    let removed = 0
    let jobId: string | undefined
    let isNeeded = false
    for await (const { key, modifiedAt } of blobs.list(checkpointsPrefix)) {
      if (this.#stopped) break
      const owner = jobOfCheckpoint(key)
      if (owner === undefined || modifiedAt > before) continue
      if (owner !== jobId) {
        const job = await jobs.get((jobId = owner))
        isNeeded = job !== undefined && (!isTerminal(job) || keepsWork(job, Date.now()))
      }
      if (!isNeeded) removed += await this.#remove(key)
    }
    return removed
  }

  /** Results of jobs that are gone, of claims that lost, and what interrupted writes left. */
  async #removeOrphans(allowMassRemoval: boolean): Promise<number> {
    const { blobs, jobs, options, logger } = this.#ports
    const { orphansMs } = options.retention
    const before = Date.now() - orphansMs
    const orphans: string[] = []
    let files = 0
    let job: JobRecord | undefined
    let jobId: string | undefined
    for await (const { key, modifiedAt } of blobs.list(resultsPrefix)) {
      if (this.#stopped) return 0
      const result = parseResultKey(key)
      if (!result) continue
      files++
      if (modifiedAt > before) continue
      // In key order, so the files of a job come together.
      if (jobId !== result.jobId) job = await jobs.get((jobId = result.jobId))
      if (!job || isOrphan(job, key, result)) orphans.push(key)
    }
    if (files >= fewFiles && orphans.length > files / 2 && !allowMassRemoval) {
      this.#problem =
        'Most result files belong to no job that the job store knows, so none was removed. Is this the right store, and is it complete? If the files may be deleted, call engine.sweep({ files: true, allowMassRemoval: true }).'
      logger.error({ files, orphans: orphans.length }, this.#problem)
      return 0
    }
    let removed = 0
    for (const key of orphans) {
      if (this.#stopped) return removed
      removed += await this.#remove(key)
    }
    return removed + ((await blobs.cleanUp?.(orphansMs)) ?? 0)
  }

  /** One file that cannot be removed keeps no other. */
  async #remove(key: string): Promise<0 | 1> {
    try {
      await this.#ports.blobs.delete(key)
      return 1
    } catch (error) {
      this.#ports.logger.warn({ key, err: error }, 'A file that belongs to nothing could not be removed.')
      return 0
    }
  }
}

function isOrphan(job: JobRecord, key: string, { token, nonce }: { token: number; nonce: string }): boolean {
  if (isTerminal(job))
    return !Object.values(job.outputs ?? {}).some((output) => output.key === key || peaksKey(output.key) === key)
  return token < job.token || (job.lease !== null && nonce !== job.lease.nonce)
}
