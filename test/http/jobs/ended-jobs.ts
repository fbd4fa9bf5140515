import { fail, sampleJob, succeed } from '../../../src/contract/job-samples.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'

/** Jobs that have just ended. */
export async function endedJobs(
  store: JobStore,
  count: number,
  { fields, isFailed = false }: { fields?: Partial<JobRecord>; isFailed?: boolean } = {},
): Promise<JobRecord[]> {
  const made = (await store.createAll(Array.from({ length: count }, () => sampleJob(fields)))) ?? []
  for (const { id } of made) {
    const claimed = await store.claim({ id, owner: 'w', leaseMs: 60_000 })
    await store.apply(id, isFailed ? fail(claimed?.token ?? 0) : succeed(claimed ?? sampleJob()))
  }
  return made
}
