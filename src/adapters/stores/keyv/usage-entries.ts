import { z } from 'zod'
import {
  addUsage,
  dayMs,
  dayOf,
  noUsage,
  type Quota,
  quotaExceeded,
  type Usage,
} from '../../../core/engine/job/quota.js'
import { type Backend, keyPart, parsed } from './backend.js'
import { KeyLocks } from './key-locks.js'

const usageSchema = z.object({ jobs: z.number(), audioSeconds: z.number(), bytes: z.number() })

/** What applications used: one entry for each and its day, which expires. */
export class UsageEntries {
  readonly #backend: Backend
  readonly #clock: () => number
  readonly #locks = new KeyLocks()

  constructor(backend: Backend, clock: () => number) {
    this.#backend = backend
    this.#clock = clock
  }

  read(app: string): Promise<Usage> {
    return this.#read(this.#key(app))
  }

  /**
   * Runs `work`, which makes `jobs` jobs or none (`undefined`, or an error), while nobody else counts for the
   * application, and counts them.
   *
   * @throws StemworkError `QUOTA_EXCEEDED`.
   */
  async taking<Result>(
    app: string,
    quota: Quota | undefined,
    jobs: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (!quota) return await work()
    return await this.#locks.hold(app, async () => {
      // The key once: it is another after midnight, when nothing has been used.
      const key = this.#key(app)
      const used = await this.#read(key)
      const refused = quotaExceeded(quota, used, jobs, this.#clock())
      if (refused) throw refused
      const result = await work()
      if (result !== undefined) await this.#write(key, addUsage(used, { jobs }))
      return result
    })
  }

  async add(app: string, more: Partial<Usage>): Promise<void> {
    const key = this.#key(app)
    await this.#locks.hold(app, async () => this.#write(key, addUsage(await this.#read(key), more)))
  }

  async #read(key: string): Promise<Usage> {
    return parsed(usageSchema, key, await this.#backend.read(key)) ?? noUsage
  }

  #write(key: string, usage: Usage): Promise<void> {
    return this.#backend.write(key, JSON.stringify(usage), 2 * dayMs)
  }

  #key(app: string): string {
    return `stemwork/usage/${dayOf(this.#clock())}/${keyPart(app)}`
  }
}
