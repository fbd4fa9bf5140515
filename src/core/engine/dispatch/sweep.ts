import { jobResultsPrefix, parseResultKey, resultsPrefix, uploadsPrefix } from '../job/blob-keys.js'
import { isTerminal, type JobRecord } from '../job/job.js'
import type { EngineOptions } from '../options.js'
import type { BlobStore } from '../ports/blob-store.js'
import type { JobStore } from '../ports/job-store.js'
import type { Logger } from '../ports/logger.js'
import { isUploadInUse, removeUploads } from './uploads.js'

export interface SweepPorts {
  jobs: JobStore
  blobs: BlobStore
  options: EngineOptions
  logger: Logger
}

/** What one sweep did. */
export interface SweepReport {
  deleted: number
  expired: number
  purged: number
  uploads: number
  orphans: number
}

const batch = 100
/** Listing every file is the dear part, and nothing of it is urgent. */
const filesEvery = 20

/**
 * Finishes what a crash left undone and removes what has had its time. Every step may be repeated, interrupted, or done by
 * several processes at once.
 */
export class Sweep {
  readonly #ports: SweepPorts
  #round = 0

  constructor(ports: SweepPorts) {
    this.#ports = ports
  }

  async run(options: { files?: boolean } = {}): Promise<SweepReport> {
    const withFiles = options.files ?? this.#round++ % filesEvery === 0
    const report: SweepReport = { deleted: 0, expired: 0, purged: 0, uploads: 0, orphans: 0 }
    const steps: [keyof SweepReport, () => Promise<number>][] = [
      ['deleted', () => this.#finishDeletions()],
      ['expired', () => this.#removeExpiredResults()],
      ['purged', () => this.#purgeOldJobs()],
    ]
    if (withFiles) steps.push(['uploads', () => this.#removeUnusedUploads()], ['orphans', () => this.#removeOrphans()])
    for (const [name, step] of steps) {
      try {
        report[name] = await step()
      } catch (error) {
        this.#ports.logger.warn({ step: name, error }, 'A step of the sweep failed; the next sweep does it again.')
      }
    }
    return report
  }

  async #finishDeletions(): Promise<number> {
    const due = await this.#ports.jobs.due('deleted', batch)
    for (const job of due) await finishDeletion(job, this.#ports)
    return due.length
  }

  async #removeExpiredResults(): Promise<number> {
    const { jobs, blobs } = this.#ports
    const due = await jobs.due('expired', batch)
    for (const job of due) {
      await blobs.deletePrefix(jobResultsPrefix(job.id))
      await jobs.apply(job.id, { kind: 'expire' })
    }
    return due.length
  }

  async #purgeOldJobs(): Promise<number> {
    const { jobs, options } = this.#ports
    const purged = await jobs.purge({ endedBefore: Date.now() - options.retention.jobsMs, limit: batch })
    return purged.length
  }

  async #removeUnusedUploads(): Promise<number> {
    const { blobs, jobs, options } = this.#ports
    const before = Date.now() - options.retention.unusedUploadsMs
    let removed = 0
    for await (const { key, modifiedAt } of blobs.list(uploadsPrefix)) {
      if (modifiedAt >= before || (await isUploadInUse(key, jobs))) continue
      await blobs.delete(key)
      removed++
    }
    return removed
  }

  /** Results of jobs that are gone, of claims that lost, and what interrupted writes left. */
  async #removeOrphans(): Promise<number> {
    const { blobs, jobs, options } = this.#ports
    const { orphansMs } = options.retention
    const before = Date.now() - orphansMs
    let removed = 0
    for await (const { key, modifiedAt } of blobs.list(resultsPrefix)) {
      const place = parseResultKey(key)
      if (!place || modifiedAt > before) continue
      const job = await jobs.get(place.jobId)
      if (job && !isOrphan(job, key, place.token)) continue
      await blobs.delete(key)
      removed++
    }
    return removed + ((await blobs.cleanUp?.(orphansMs)) ?? 0)
  }
}

function isOrphan(job: JobRecord, key: string, token: number): boolean {
  if (isTerminal(job)) return !Object.values(job.outputs ?? {}).some((output) => output.key === key)
  return token < job.token
}

/** Files first, then the record: what is interrupted in between is found again by its record. */
export async function finishDeletion(job: JobRecord, ports: Pick<SweepPorts, 'jobs' | 'blobs'>): Promise<void> {
  await ports.blobs.deletePrefix(jobResultsPrefix(job.id))
  await removeUploads(job, ports.jobs, ports.blobs)
  await ports.jobs.purge({ id: job.id })
}
