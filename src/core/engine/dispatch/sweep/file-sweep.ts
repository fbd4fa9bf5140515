import { parseResultKey, peaksKey, resultsPrefix, uploadsPrefix } from '../../job/blob-keys.js'
import { checkpointsPrefix, jobOfCheckpoint } from '../../job/checkpoint-keys.js'
import { isTerminal, type JobRecord } from '../../job/job.js'
import { keepsWork } from '../../job/retry.js'
import type { SweepPorts } from './sweep.js'
import { beginFilePass } from './deployment-marker.js'
import { isUploadInUse } from './uploads.js'

export interface FileSweepOptions {
  /** Makes a pass only if no process began one within this time. Default: 0. */
  everyMs?: number
  /** Removes orphans even if most files are orphans. Default: false, because the job store may be the wrong one. */
  allowMassRemoval?: boolean
}

export interface FileSweepReport {
  uploads: number
  orphans: number
}

/** Among at least this many files, orphans are kept if they are more than half. */
const fewFiles = 20

export type FileSweep = ReturnType<typeof fileSweep>

/** Checks every file, and removes files without a reference. Not urgent. */
export function fileSweep(ports: SweepPorts) {
  const { blobs, jobs, clock, options, logger } = ports
  let isStopped = false
  let problem: string | undefined
  return {
    run,
    /** Why this process's last pass removed no orphans, for operators. */
    get problem() {
      return problem
    },
    /** Ends the current pass after the file it is checking. */
    stop: () => void (isStopped = true),
  }

  async function run({ everyMs = 0, allowMassRemoval = false }: FileSweepOptions = {}): Promise<FileSweepReport> {
    const report: FileSweepReport = { uploads: 0, orphans: 0 }
    try {
      const pass = await beginFilePass(ports, everyMs)
      if (!pass) return report
      problem = pass.isOwn ? undefined : pass.problem
      if (!pass.isOwn) return report
      const orphans = await removeOrphans(pass.now, allowMassRemoval)
      if (orphans !== undefined) {
        report.uploads = await removeUnusedUploads(pass.now)
        report.orphans = orphans + (await removeCheckpoints(pass.now))
      }
      // What unfinished writes have left belongs to no job of any store.
      if (!isStopped) report.orphans += (await blobs.cleanUp?.(pass.now - options.retention.orphansMs)) ?? 0
    } catch (error) {
      logger.warn({ err: error }, 'The sweep of files did not finish; the next one repeats it.')
    }
    return report
  }

  async function removeUnusedUploads(now: number): Promise<number> {
    const before = now - options.retention.unusedUploadsMs
    let removed = 0
    for await (const { key, modifiedAt } of blobs.list(uploadsPrefix)) {
      if (isStopped) break
      if (modifiedAt < before && !(await isUploadInUse(key, ports))) removed += await remove(key)
    }
    return removed
  }

  /** Removes checkpoints of jobs that no longer exist, or that ended and do not keep them for a retry. */
  async function removeCheckpoints(now: number): Promise<number> {
    const before = now - options.retention.orphansMs
    let removed = 0
    let jobId: string | undefined
    let isNeeded = false
    for await (const { key, modifiedAt } of blobs.list(checkpointsPrefix)) {
      if (isStopped) break
      const owner = jobOfCheckpoint(key)
      if (owner === undefined || modifiedAt > before) continue
      if (owner !== jobId) {
        const job = await jobs.get((jobId = owner))
        isNeeded = job !== undefined && (!isTerminal(job) || keepsWork(job, await clock.time()))
      }
      if (!isNeeded) removed += await remove(key)
    }
    return removed
  }

  /** Removes results of deleted jobs and of superseded claims; `undefined`: the job store seems to lack most jobs. */
  async function removeOrphans(now: number, allowMassRemoval: boolean): Promise<number | undefined> {
    const before = now - options.retention.orphansMs
    const orphans: string[] = []
    let files = 0
    let job: JobRecord | undefined
    let jobId: string | undefined
    for await (const { key, modifiedAt } of blobs.list(resultsPrefix)) {
      if (isStopped) return 0
      const result = parseResultKey(key)
      if (!result) continue
      files++
      if (modifiedAt > before) continue
      // The list is in key order, so a job's files are adjacent.
      if (jobId !== result.jobId) job = await jobs.get((jobId = result.jobId))
      if (!job || isOrphan(job, key, result)) orphans.push(key)
    }
    if (files >= fewFiles && orphans.length > files / 2 && !allowMassRemoval) {
      problem =
        'Most result files belong to no job that the job store knows, so no file was removed. Is this the right ' +
        'store, and is it complete? If the files may be deleted, call engine.sweep({ files: true, ' +
        'allowMassRemoval: true }).'
      logger.error({ files, orphans: orphans.length }, problem)
      return undefined
    }
    let removed = 0
    for (const key of orphans) {
      if (isStopped) return removed
      removed += await remove(key)
    }
    return removed
  }

  /** Removes a file; a failure does not stop the sweep. Returns the number of removed files. */
  async function remove(key: string): Promise<0 | 1> {
    try {
      await blobs.delete(key)
      return 1
    } catch (error) {
      logger.warn({ key, err: error }, 'A file that belongs to nothing could not be removed.')
      return 0
    }
  }
}

function isOrphan(job: JobRecord, key: string, { token, nonce }: { token: number; nonce: string }): boolean {
  if (isTerminal(job))
    return !Object.values(job.outputs ?? {}).some((output) => output.key === key || peaksKey(output.key) === key)
  return token < job.token || (job.lease !== null && nonce !== job.lease.nonce)
}
