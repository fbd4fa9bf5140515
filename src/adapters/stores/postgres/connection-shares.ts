import { Shares } from '../../../core/engine/limits/shares.js'
import type { PostgresPool } from './database.js'

/** The default of `pg`. */
const defaultMax = 10

/**
 * Divides half of the pool's connections among the applications whose jobs are created, listed and counted. The others
 * are for what goes on whatever applications ask for: claims, leases and ends, and look-ups of keys and single jobs.
 */
export function connectionShares({ options }: Pick<PostgresPool, 'options'>): Shares {
  const total = Math.max(1, Math.floor((options?.max ?? defaultMax) / 2))
  return new Shares({ total, reserve: Math.min(1, total - 1) })
}
