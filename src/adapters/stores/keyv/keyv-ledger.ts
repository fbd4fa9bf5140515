import { z } from 'zod'
import { type LedgerEntry, ledgerEntrySchema } from '../../../core/engine/job/ledger.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { dayOf } from '../../../core/engine/job/quota.js'
import { coalesced } from '../../shared/coalesced.js'
import { LedgerEntries } from '../shared/ledger-entries.js'
import { type Backend, parsed } from './backend.js'
import type { KnownJobs } from './known-jobs.js'

type Settled = Pick<JobRecord, 'settlement'>

const directoryKey = 'stemwork/ledger'
const entriesPerPage = 100

interface Page {
  number: number
  entries: LedgerEntry[]
  write(): Promise<void>
}

/**
 * The ledger of use, in pages of the backend and whole in memory. An entry is part of the record that ends its job, and
 * is copied from there: what a crash or an outage kept from being copied is copied before the ledger is read, and
 * before the job is forgotten.
 */
export class KeyvLedger {
  readonly #backend: Backend
  #entries = new LedgerEntries()
  #pages: Page[] = []
  #loading: Promise<void> | undefined
  /** Entries of earlier days were forgotten, although their jobs may still be there. */
  #keepFromDay = 0
  readonly #writeDirectory: () => Promise<void>

  constructor(backend: Backend) {
    this.#backend = backend
    this.#writeDirectory = coalesced(() =>
      backend.write(directoryKey, JSON.stringify(this.#pages.map(({ number }) => number))),
    )
  }

  /** Once it returns, the ends of these jobs are in it, and a restart finds them. */
  async ensure(known: KnownJobs, jobs: readonly Settled[]): Promise<void> {
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = undefined
      throw error
    })
    await this.#loading
    await known.locks.hold(directoryKey, async () => {
      for (const { settlement } of jobs) {
        if (!settlement || this.#entries.has(settlement.id) || dayOf(settlement.endedAt) < this.#keepFromDay) continue
        const page = await this.#openPage()
        page.entries.push(settlement)
        try {
          await page.write()
        } catch (error) {
          page.entries.pop()
          throw error
        }
        this.#entries.add(settlement)
      }
    })
  }

  /** All entries, those of jobs whose end was not copied yet included. */
  async complete(known: KnownJobs): Promise<LedgerEntries> {
    await this.ensure(known, known.index.jobs())
    return this.#entries
  }

  async forget({ keepFromDay }: { keepFromDay: number }): Promise<number> {
    this.#keepFromDay = Math.max(this.#keepFromDay, keepFromDay)
    const isOld = ({ endedAt }: LedgerEntry) => dayOf(endedAt) < keepFromDay
    for (const page of this.#pages.filter(({ entries }) => entries.some(isOld))) {
      page.entries = page.entries.filter((entry) => !isOld(entry))
      if (page.entries.length > 0) await page.write()
      else {
        this.#pages = this.#pages.filter((one) => one !== page)
        await this.#writeDirectory()
        await this.#backend.remove(pageKey(page.number))
      }
    }
    return await this.#entries.tidy({ keepFromDay })
  }

  async #openPage(): Promise<Page> {
    const last = this.#pages.at(-1)
    if (last && last.entries.length < entriesPerPage) return last
    const page = this.#page((last?.number ?? 0) + 1, [])
    this.#pages.push(page)
    await this.#writeDirectory()
    return page
  }

  async #load(): Promise<void> {
    const numbers = parsed(z.array(z.number().int()), directoryKey, await this.#backend.read(directoryKey)) ?? []
    const texts = await this.#backend.readMany(numbers.map(pageKey))
    this.#entries = new LedgerEntries()
    this.#pages = numbers.map((number, index) =>
      this.#page(number, parsed(z.array(ledgerEntrySchema), pageKey(number), texts[index]) ?? []),
    )
    for (const { entries } of this.#pages) for (const entry of entries) this.#entries.add(entry)
  }

  #page(number: number, entries: LedgerEntry[]): Page {
    const page: Page = {
      number,
      entries,
      write: coalesced(() => this.#backend.write(pageKey(number), JSON.stringify(page.entries))),
    }
    return page
  }
}

function pageKey(number: number): string {
  return `${directoryKey}/${number}`
}
