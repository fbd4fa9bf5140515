import { StemworkError } from '../../core/engine/errors.js'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { LedgerEntry } from '../../core/engine/job/ledger.js'
import { rested } from '../../core/engine/limits/rested.js'
import type { HttpEngine } from '../http-engine.js'
import type { FailureFacts, Overview } from './answers.js'

const stepMs = 5 * 60_000
/** The last hour. */
const shownSteps = 12
const dayMs = 24 * 3_600_000
/** An entry is in the ledger at most this long after its time, unless a transaction of the host takes longer. */
const lateMs = 60_000
const pageSize = 5_000

/** Jobs that ended in five minutes. */
interface Step {
  succeeded: number
  failed: number
  failures: Map<string, { code: string; reason: string | null; jobs: number; last: LedgerEntry }>
  /** Times of successful jobs from claim to end, by workflow. */
  runMs: Map<string, number[]>
}

export interface Ended {
  rates: Overview['rates']
  failures: FailureFacts[]
  /** Median run times by workflow. */
  medianMs: ReadonlyMap<string, number>
}

/** Counts the jobs of the whole store that ended in the last day, from the ledger, which has an entry for each. */
export class EndedCounts {
  readonly #engine: Pick<HttpEngine, 'usageEntries' | 'get'>
  /** Steps by the time at which they begin. */
  readonly #steps = new Map<number, Step>()
  /** Steps before this one are complete. */
  #readTo = 0
  #reading: Promise<void> | undefined
  readonly #errors = new Map<string, JobRecord['error']>()

  constructor(engine: Pick<HttpEngine, 'usageEntries' | 'get'>) {
    this.#engine = engine
  }

  /** Undefined if the store keeps no ledger. */
  async read(at: number): Promise<Ended | undefined> {
    this.#reading ??= this.#catchUp(at).finally(() => (this.#reading = undefined))
    try {
      await this.#reading
    } catch (error) {
      if (StemworkError.is(error) && error.code === 'NOT_FOUND') return undefined
      throw error
    }
    const end = Math.ceil((at + 1) / stepMs) * stepMs
    const rates = Array.from({ length: shownSteps }, (_, index) => {
      const from = end - (shownSteps - index) * stepMs
      const { succeeded, failed } = this.#steps.get(from) ?? noEnds()
      return { from, succeeded, failed }
    })
    return { rates, failures: await this.#failures(), medianMs: this.#medians() }
  }

  async #catchUp(at: number): Promise<void> {
    const first = stepOf(at - dayMs)
    const from = Math.max(this.#readTo, first)
    for (const step of this.#steps.keys()) if (step < first || step >= from) this.#steps.delete(step)
    let after = { endedAt: from - 1, id: '' }
    for (;;) {
      const page = { from, to: at + dayMs, limit: pageSize, after }
      const entries = await rested(() => this.#engine.usageEntries(page))
      for (const entry of entries) if (entry.endedAt >= from) this.#add(entry)
      const last = entries.at(-1)
      if (!last || entries.length < pageSize) break
      after = last
    }
    this.#readTo = stepOf(at - lateMs)
  }

  #add(entry: LedgerEntry): void {
    const key = stepOf(entry.endedAt)
    const step = this.#steps.get(key) ?? noEnds()
    this.#steps.set(key, step)
    if (entry.result === 'SUCCEEDED') {
      step.succeeded += 1
      if (typeof entry.runMs !== 'number') return
      const times = step.runMs.get(entry.workflow) ?? []
      step.runMs.set(entry.workflow, times)
      times.push(entry.runMs)
    } else {
      step.failed += 1
      const [code, reason] = [entry.error ?? 'INTERNAL_ERROR', entry.reason ?? null]
      const jobs = (step.failures.get(`${code} ${reason}`)?.jobs ?? 0) + 1
      step.failures.set(`${code} ${reason}`, { code, reason, jobs, last: entry })
    }
  }

  /** Most frequent first. */
  async #failures(): Promise<FailureFacts[]> {
    const all: Step['failures'] = new Map()
    // In chronological order, so that the failure seen last is the latest.
    for (const from of [...this.#steps.keys()].sort((a, b) => a - b))
      for (const [key, failure] of this.#steps.get(from)?.failures ?? [])
        all.set(key, { ...failure, jobs: failure.jobs + (all.get(key)?.jobs ?? 0) })
    const lasting = new Set([...all.values()].map(({ last }) => last.id))
    for (const id of this.#errors.keys()) if (!lasting.has(id)) this.#errors.delete(id)
    const facts = [...all.values()].map(async ({ code, reason, jobs, last }): Promise<FailureFacts> => {
      if (!this.#errors.has(last.id)) this.#errors.set(last.id, (await this.#engine.get(last.jobId))?.error ?? null)
      const { title = code, message = '' } = this.#errors.get(last.id) ?? {}
      return { code, reason, title, jobs, last: { id: last.jobId, at: last.endedAt, message } }
    })
    return (await Promise.all(facts)).sort((a, b) => b.jobs - a.jobs)
  }

  #medians(): Map<string, number> {
    const times = new Map<string, number[]>()
    for (const { runMs } of this.#steps.values())
      for (const [workflow, some] of runMs) times.set(workflow, [...(times.get(workflow) ?? []), ...some])
    return new Map([...times].map(([workflow, all]) => [workflow, all.sort((a, b) => a - b)[all.length >> 1] ?? 0]))
  }
}

function stepOf(time: number): number {
  return Math.floor(time / stepMs) * stepMs
}

function noEnds(): Step {
  return { succeeded: 0, failed: 0, failures: new Map(), runMs: new Map() }
}
