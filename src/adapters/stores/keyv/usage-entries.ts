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

  async read(app: string): Promise<Usage> {
    const key = this.#key(app)
    return parsed(usageSchema, key, await this.#backend.read(key)) ?? noUsage
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
      const used = await this.read(app)
      const refused = quotaExceeded(quota, used, jobs, this.#clock())
      if (refused) throw refused
      const result = await work()
      if (result !== undefined) await this.#write(app, addUsage(used, { jobs }))
      return result
    })
  }

  async add(app: string, more: Partial<Usage>): Promise<void> {
    await this.#locks.hold(app, async () => this.#write(app, addUsage(await this.read(app), more)))
  }

  #write(app: string, usage: Usage): Promise<void> {
    return this.#backend.write(this.#key(app), JSON.stringify(usage), 2 * dayMs)
  }

  #key(app: string): string {
    return `stemwork/usage/${dayOf(this.#clock())}/${keyPart(app)}`
  }
}
