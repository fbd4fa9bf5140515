import { Shares } from '../../../core/engine/limits/shares.js'
import type { PostgresPool } from './database.js'

/** The default of `pg`. */
const defaultMax = 10

/**
 * Divides half of the pool's connections among the applications whose jobs are created, listed and counted. The others
 * are for what goes on whatever applications ask for: claims, leases and ends, and look-ups of keys and single jobs.
 */
export class ConnectionShares {
  readonly #shares: Shares

  constructor({ options }: Pick<PostgresPool, 'options'>) {
    const total = Math.max(1, Math.floor((options?.max ?? defaultMax) / 2))
    this.#shares = new Shares({ total, reserve: Math.min(1, total - 1) })
  }

  /** Does work that needs one connection at a time. It must not be nested: the inner work would wait for the outer. */
  async use<Result>(app: string, work: () => Promise<Result>): Promise<Result> {
    const share = await this.#shares.take(app)
    try {
      return await work()
    } finally {
      share?.release()
    }
  }
}
