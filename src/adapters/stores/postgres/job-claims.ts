import type { JobRecord } from '../../../core/engine/job/job.js'
import { servesPool } from '../../../core/engine/job/pool.js'
import { claim, type ClaimRequest } from '../../../core/engine/job/transitions.js'
import type { Claimable, JobStore } from '../../../core/engine/ports/job-store.js'
import { plainCopy } from '../shared/plain-copy.js'
import { backlogStatements, readBacklog } from './backlog.js'
import { type PostgresPool, query, type Row, transaction } from './database.js'
import { columnText } from './job-row.js'
import { aheadStatement, schedulingRules } from './scheduling-rules.js'
import type { Send, StoredJobs } from './stored-jobs.js'
import { claimNextStatement, lockClaims, tidyTurns } from './turns.js'

/** Claims after which it is worth looking for applications without waiting jobs: each leaves one at most. */
const claimsBetweenTidying = 50

type Wanted = Omit<Claimable, 'id'>

/** Who is next. */
export function jobClaims(
  pool: PostgresPool,
  schema: string,
  jobs: StoredJobs,
): Pick<JobStore, 'claim' | 'ahead' | 'backlog' | 'rules' | 'changeRule'> {
  const { send } = jobs
  const rules = schedulingRules(schema)
  const inTurn = new ClaimsInTurn(pool, schema, jobs)
  const aheadSql = aheadStatement(schema)
  const backlogSql = backlogStatements(schema)

  return {
    claim: ({ id, ...request }) =>
      id === undefined ? inTurn.claim(request, request) : claimNamed(id, request, request),

    async ahead(id, { max }) {
      const [row] = await send(aheadSql, [columnText(id), max])
      return row && Number(row[0])
    },

    async backlog() {
      const [waiting, running] = await Promise.all([send(backlogSql.waiting, []), send(backlogSql.running, [])])
      return readBacklog(waiting, running)
    },

    rules: () => rules.read(send),

    changeRule: (target, change) => rules.change(send, target, change),
  }

  async function claimNamed(
    id: string,
    request: ClaimRequest,
    { exceptApps, workflows, labels, belowRunning }: Wanted,
  ): Promise<JobRecord | undefined> {
    if (belowRunning !== undefined && !(await isBelow(id, belowRunning))) return undefined
    const isWanted = ({ app, workflow, pool: needed }: JobRecord) =>
      !exceptApps?.includes(app) && workflows?.includes(workflow) !== false && servesPool(labels, needed)
    const grant = (through = jobs.sendPrepared) =>
      jobs.change(id, (job, now) => (isWanted(job) ? claim(job, request, now) : undefined), { send: through })
    const known = await rules.read(send)
    if (known.length === 0) return await grant()
    return await underLock(pool, schema, async (locked) => {
      const stored = await jobs.read(id, locked)
      return stored && !(await rules.holdBack(locked, known, stored.job)) ? await grant(locked) : undefined
    })
  }

  /** Whether fewer other jobs of the job's application run. */
  async function isBelow(id: string, running: number): Promise<boolean> {
    const [row] = await send(
      `SELECT count(*) FROM ${schema}.jobs AS other JOIN ${schema}.jobs AS job ON job.id = $1 AND other.app = job.app
        AND other.id <> job.id WHERE other.status = 'STARTED' AND NOT other.deleted`,
      [columnText(id)],
    )
    return Number(row?.[0]) < running
  }
}

/** Claims of the next job. */
class ClaimsInTurn {
  readonly #pool: PostgresPool
  readonly #schema: string
  readonly #jobs: StoredJobs
  readonly #statement: string
  /** Whether the last claim found limits of running jobs. */
  #isLimited = false
  #untidyClaims = 0

  constructor(pool: PostgresPool, schema: string, jobs: StoredJobs) {
    this.#pool = pool
    this.#schema = schema
    this.#jobs = jobs
    this.#statement = claimNextStatement(schema)
  }

  async claim(request: ClaimRequest, wanted: Wanted): Promise<JobRecord | undefined> {
    let row: Row | undefined
    let job: JobRecord | undefined
    do {
      row = await this.#next(request, wanted)
      job = row && this.#jobs.readable([row])[0]
    } while (row && !job)
    if (row && job?.lease) {
      this.#untidyClaims++
      this.#jobs.held.keep({ job, version: Number(row[0]) }, job.lease.until - Math.ceil(request.leaseMs))
    }
    if (this.#untidyClaims >= (row ? claimsBetweenTidying : 1)) {
      this.#untidyClaims = 0
      // Only speed depends on it, and the next claims repeat it.
      await tidyTurns(this.#pool, this.#schema).catch(() => {})
    }
    return job && plainCopy(job)
  }

  /** The row of the job that was claimed, under the lock where there are limits. */
  async #next(request: ClaimRequest, wanted: Wanted): Promise<Row | undefined> {
    let answer = this.#isLimited ? undefined : await this.#ask(this.#jobs.sendPrepared, request, wanted, false)
    if (!answer || (answer.isLimited && !answer.row))
      answer = await underLock(this.#pool, this.#schema, (send) => this.#ask(send, request, wanted, true))
    this.#isLimited = answer.isLimited
    return answer.row
  }

  async #ask(
    send: Send,
    { owner, leaseMs, nonce = '', lapsedBefore }: ClaimRequest,
    { exceptApps = [], workflows, labels, belowRunning }: Wanted,
    isLocked: boolean,
  ): Promise<{ row: Row | undefined; isLimited: boolean }> {
    const [row] = await send(this.#statement, [
      columnText(owner),
      Math.ceil(leaseMs),
      nonce,
      exceptApps.map((app) => columnText(app)),
      this.#jobs.unreadable,
      workflows?.map((workflow) => columnText(workflow)) ?? null,
      isLocked,
      labels ?? null,
      lapsedBefore === undefined ? null : Math.floor(lapsedBefore),
      belowRunning ?? null,
    ])
    return { row: row?.[0] === null ? undefined : row, isLimited: row?.[4] === 't' }
  }
}

/** In a transaction in which nobody else claims under limits. */
function underLock<Result>(pool: PostgresPool, schema: string, work: (send: Send) => Promise<Result>): Promise<Result> {
  return transaction(pool, async (client) => {
    await lockClaims(client, schema)
    return await work((text, values) => query(client, text, values))
  })
}
