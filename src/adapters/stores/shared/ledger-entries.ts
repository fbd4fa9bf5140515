import { type LedgerEntry, totalsOf } from '../../../core/engine/job/ledger.js'
import { isTerminal, type JobRecord } from '../../../core/engine/job/job.js'
import { dayOf } from '../../../core/engine/job/quota.js'
import type { Ledger } from '../../../core/engine/ports/job-store.js'
import { plainCopy } from './plain-copy.js'

/** The entry that a change adds if it ends the job. */
export function entryOf(before: Pick<JobRecord, 'status'>, after: JobRecord): LedgerEntry | undefined {
  return isTerminal(before) || !isTerminal(after) ? undefined : (after.settlement ?? undefined)
}

/** A ledger in memory. */
export class LedgerEntries implements Ledger {
  #entries = new Map<string, LedgerEntry>()

  has(id: string): boolean {
    return this.#entries.has(id)
  }

  /** Adding an entry again is no change. */
  add(entry: LedgerEntry | undefined): void {
    if (entry) this.#entries.set(entry.id, plainCopy(entry))
  }

  async entries({ fromDay, toDay, app, after, limit }: Parameters<Ledger['entries']>[0]): Promise<LedgerEntry[]> {
    const found = [...this.#entries.values()].filter(({ endedAt, app: owner, id }) => {
      const day = dayOf(endedAt)
      if (day < fromDay || day > toDay || (app !== undefined && owner !== app)) return false
      return !after || endedAt > after.endedAt || (endedAt === after.endedAt && id > after.id)
    })
    found.sort((a, b) => a.endedAt - b.endedAt || (a.id < b.id ? -1 : 1))
    return plainCopy(found.slice(0, Math.max(0, limit)))
  }

  totals: Ledger['totals'] = async (query, groupBy) => totalsOf(this.#entries.values(), query, groupBy)

  async tidy({ keepFromDay }: { keepFromDay: number }): Promise<number> {
    const old = [...this.#entries.values()].filter(({ endedAt }) => dayOf(endedAt) < keepFromDay)
    for (const { id } of old) this.#entries.delete(id)
    return old.length
  }
}
