import type { JobQuery } from '../../../core/engine/ports/job-store.js'
import { batched } from '../shared/batched.js'
import { type PostgresPool, statement } from './database.js'
import { columnText } from './job-row.js'

type CountQuery = Pick<JobQuery, 'app' | 'statuses'>

/** Rows of one application that writers add before somebody sums them up: what a count has to read at most, about. */
const writesBetweenSums = 250

/** Exact numbers of jobs by application and status, kept by the statements that change them and read without counting jobs. */
export class JobCounts {
  /** The same question, asked many times at once (every submit asks how many jobs wait), is put to the database once. */
  readonly count: (query: CountQuery) => Promise<number>
  readonly #pool: PostgresPool
  readonly #schema: string
  #touched = new Set<string>()
  #writes = 0
  #summing = false

  constructor(pool: PostgresPool, schema: string) {
    this.#pool = pool
    this.#schema = schema
    this.count = batched(
      (queries: CountQuery[]) => {
        const answers = new Map<string, Promise<number>>()
        return Promise.all(
          queries.map((query) => {
            const key = JSON.stringify([query.app, query.statuses])
            const answer = answers.get(key) ?? this.#count(query)
            answers.set(key, answer)
            return answer
          }),
        )
      },
      { maxItems: 1000, parallel: 2 },
    )
  }

  async #count({ app, statuses }: CountQuery): Promise<number> {
    const values: unknown[] = []
    const conditions: string[] = []
    if (app !== undefined) conditions.push(`app = $${values.push(columnText(app))}`)
    if (statuses !== undefined) conditions.push(`status = ANY($${values.push(statuses)}::text[])`)
    const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
    const [total] = await statement(
      this.#pool,
      `SELECT coalesce(sum(delta), 0) FROM ${this.#schema}.job_counts ${where}`,
      values,
    )
    return Number(total?.[0])
  }

  /** Notes that a write may have added rows, and now and then sums them up in the background. */
  noteWrite(apps: Iterable<string>): void {
    for (const app of apps) this.#touched.add(columnText(app))
    if (++this.#writes < writesBetweenSums || this.#summing) return
    this.#summing = true
    const touched = this.#touched
    this.#touched = new Set()
    this.#writes = 0
    this.sumUp([...touched])
      // Nothing is lost but time: the rows stay, and the next round sums them up.
      .catch(() => touched.forEach((app) => this.#touched.add(app)))
      .finally(() => (this.#summing = false))
  }

  /** Puts one row in the place of many. Readers see the rows before or the row after; rows being summed up elsewhere are left. */
  async sumUp(apps: readonly string[]): Promise<void> {
    const table = `${this.#schema}.job_counts`
    await statement(
      this.#pool,
      `WITH gone AS (
        DELETE FROM ${table} WHERE ctid IN (SELECT ctid FROM ${table} WHERE app = ANY($1::text[]) FOR UPDATE SKIP LOCKED) RETURNING app, status, delta
      )
      INSERT INTO ${table} (app, status, delta) SELECT app, status, sum(delta) FROM gone GROUP BY app, status HAVING sum(delta) <> 0`,
      [apps],
    )
  }
}
