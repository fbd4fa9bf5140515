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

export type UsageEntries = ReturnType<typeof usageEntries>

/** Usage of applications: one entry for each application and day, which expires. */
export function usageEntries(backend: Backend, clock: () => number) {
  const locks = new KeyLocks()
  const keyOf = (app: string) => `stemwork/usage/${dayOf(clock())}/${keyPart(app)}`
  const read = async (key: string): Promise<Usage> => parsed(usageSchema, key, await backend.read(key)) ?? noUsage
  const write = (key: string, usage: Usage) => backend.write(key, JSON.stringify(usage), 2 * dayMs)

  return {
    read: (app: string) => read(keyOf(app)),

    /**
     * Runs `work`, which makes `jobs` jobs or none (`undefined`, or an error), while no one else counts for the
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
      return await locks.hold(app, async () => {
        // Computed once: after midnight, the key is another, under which nothing has been used.
        const key = keyOf(app)
        const used = await read(key)
        const refused = quotaExceeded(quota, used, jobs, clock())
        if (refused) throw refused
        const result = await work()
        if (result !== undefined) await write(key, addUsage(used, { jobs }))
        return result
      })
    },

    async add(app: string, more: Partial<Usage>): Promise<void> {
      const key = keyOf(app)
      await locks.hold(app, async () => write(key, addUsage(await read(key), more)))
    },
  }
}
