import { type LedgerEntry, ledgerEntrySchema } from '../../../core/engine/job/ledger.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { dayOf } from '../../../core/engine/job/quota.js'
import { LedgerEntries } from '../shared/ledger-entries.js'
import type { Backend } from './backend.js'
import type { KnownJobs } from './known-jobs.js'
import { type PagedList, pagedList } from './paged-list.js'

type Settled = Pick<JobRecord, 'settlement'>

export type KeyvLedger = ReturnType<typeof keyvLedger>

/**
 * The ledger of usage. An entry is part of the record that ends its job, and is copied from there: entries that a crash
 * or an outage kept from being copied are copied before the ledger is read, and before the job is purged.
 */
export function keyvLedger(backend: Backend) {
  const entries = new LedgerEntries()
  let loading: Promise<PagedList<LedgerEntry>> | undefined
  /** Entries of earlier days were forgotten, although their jobs may still be there. */
  let keptFrom = 0

  const load = async () => {
    const pages = await pagedList(backend, {
      directoryKey: 'stemwork/ledger',
      schema: ledgerEntrySchema,
      keyOf: ({ id }) => id,
      perPage: 100,
    })
    for (const entry of pages.items()) entries.add(entry)
    return pages
  }
  const loaded = () =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    }))

  /** Once this returns, the ends of these jobs are in the ledger, and a restart finds them. */
  async function ensure(jobs: readonly Settled[]): Promise<void> {
    const pages = await loaded()
    for (const { settlement } of jobs) {
      if (!settlement || entries.has(settlement.id) || dayOf(settlement.endedAt) < keptFrom) continue
      await pages.add(settlement)
      entries.add(settlement)
    }
  }

  return {
    ensure,

    /** All entries, including those of jobs whose end was not copied yet. */
    async complete(known: KnownJobs): Promise<LedgerEntries> {
      await ensure(known.index.jobs())
      return entries
    },

    async forget({ keepFromDay }: { keepFromDay: number }): Promise<number> {
      keptFrom = Math.max(keptFrom, keepFromDay)
      const pages = await loaded()
      const old = pages.items().filter(({ endedAt }) => dayOf(endedAt) < keepFromDay)
      await pages.remove(old.map(({ id }) => id))
      return await entries.tidy({ keepFromDay })
    },
  }
}
