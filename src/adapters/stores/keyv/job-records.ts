import { z } from 'zod'
import type { StemworkError } from '../../../core/engine/errors.js'
import { type JobRecord, jobRecordSchema } from '../../../core/engine/job/job.js'
import { type Backend, damaged, keyPart } from './backend.js'

const entrySchema = z.union([
  z.object({ version: z.number().int(), job: jobRecordSchema }),
  z.object({ version: z.number().int(), purged: z.literal(true) }),
])

/**
 * The entry under a job's id: the job, or the tombstone of a purged one. `version` rises with every write, so that a
 * backend that lost its last writes is noticed.
 */
export type JobEntry = z.infer<typeof entrySchema>

/** An entry that holds neither a job nor a tombstone. */
export interface DamagedEntry {
  damaged: StemworkError
}

/** Longer than any lease and any process that could still write to the job. */
export const tombstoneMs = 24 * 60 * 60 * 1000

export type JobRecords = ReturnType<typeof jobRecords>

export function jobRecords(backend: Backend) {
  return {
    read: async (id: string) => parse(id, await backend.read(recordKey(id))),

    async readMany(ids: readonly string[]): Promise<ReturnType<typeof parse>[]> {
      const texts = await backend.readMany(ids.map(recordKey))
      return ids.map((id, index) => parse(id, texts[index]))
    },

    /** Returns the job as it will be read back, as an independent copy. */
    async write(job: JobRecord, version: number): Promise<JobRecord> {
      const text = JSON.stringify({ version, job })
      await backend.write(recordKey(job.id), text)
      return (JSON.parse(text) as { job: JobRecord }).job
    },

    /** Leaves a tombstone, so that a late write of another process does not find the key free. */
    leaveTombstone: (id: string, version: number) =>
      backend.write(recordKey(id), JSON.stringify({ version, purged: true }), tombstoneMs),

    /** For backends that keep expired entries. */
    remove: (id: string) => backend.remove(recordKey(id)),
  }
}

function recordKey(id: string): string {
  return `stemwork/job/${keyPart(id)}`
}

function parse(id: string, text: string | undefined): JobEntry | DamagedEntry | undefined {
  if (text === undefined) return undefined
  try {
    const entry = entrySchema.parse(JSON.parse(text))
    if ('job' in entry && entry.job.id !== id) throw new TypeError(`It holds another job, ${entry.job.id}.`)
    return entry
  } catch (error) {
    return { damaged: damaged(recordKey(id), error) }
  }
}
