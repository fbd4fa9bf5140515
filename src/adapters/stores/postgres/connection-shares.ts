import { Shares } from '../../../core/engine/limits/shares.js'
import type { PostgresPool } from './database.js'

/** That of `pg`. */
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

  /** Work that needs one connection at a time. Such work in it would wait for itself. */
  async use<Result>(app: string, work: () => Promise<Result>): Promise<Result> {
    const share = await this.#shares.take(app)
    try {
      return await work()
    } finally {
      share?.release()
    }
  }
}
