import type { JobRecord } from '../../../core/engine/job/job.js'
import { claim, type ClaimRequest } from '../../../core/engine/job/transitions.js'
import type { JobStore } from '../../../core/engine/ports/job-store.js'
import { isWanted, type Wanted } from '../shared/wanted.js'
import { backlogStatements, readBacklog } from './backlog.js'
import { ClaimFront, type Front, frontValues } from './claim-front.js'
import { claimNext, mostAtOnce } from './claim-function.js'
import { type PostgresPool, type Row, sender, type Send, transaction } from './database.js'
import { columnText } from './job-row.js'
import { plannedCall } from './planned-functions.js'
import { aheadStatement, queueInTurn, runningStatement, schedulingRules } from './scheduling-rules.js'
import type { StoredJobs } from './stored-jobs.js'
import { lockClaims, tidyTurns } from './turns.js'

/** How soon turns are tidied again where jobs wait that a claim did not find. */
const tidiedAgainMs = 10_000
/**
 * How soon they are tidied anyway, and after how many claims: rows outlive the jobs of an application, and all claims
 * pass over jobs that an older node has added without a row.
 */
const tidiedAnywayMs = 60_000
const claimsBetweenTidying = 50
/** How many more rows than it wants a claim looks at: other claims may be taking some. */
const firstLook = 4
const longLook = 1000

/** Who is next. */
export function jobClaims(
  pool: PostgresPool,
  schema: string,
  jobs: StoredJobs,
): Pick<JobStore, 'claim' | 'claimSeveral' | 'ahead' | 'queue' | 'backlog' | 'rules' | 'changeRule'> {
  const { send } = jobs
  const rules = schedulingRules(schema)
  const inTurn = new ClaimsInTurn(pool, schema, jobs)
  const aheadSql = aheadStatement(schema)
  const backlogSql = backlogStatements(schema)
  const nextInTurn = plannedCall(pool, schema, queueInTurn(schema))

  return {
    claim: async ({ id, ...request }) =>
      id === undefined ? (await inTurn.claim(request, request, 1))[0] : await claimNamed(id, request, request),

    claimSeveral: (request, { max }) => inTurn.claim(request, request, max),

    async ahead(id, { max }) {
      const [row] = await send(aheadSql, [columnText(id), max])
      return row && Number(row[0])
    },

    async queue({ max }) {
      const values = (unreadable: readonly string[]) => [Math.max(max, 0), unreadable]
      const [running, waiting] = await Promise.all([
        jobs.select((unreadable) => runningStatement(schema, values(unreadable))),
        jobs.readWithout((unreadable) => nextInTurn(values(unreadable), (work) => work(jobs.sendPrepared))),
      ])
      return { running, waiting }
    },

    async backlog() {
      const [waiting, running] = await Promise.all([send(backlogSql.waiting, []), send(backlogSql.running, [])])
      return readBacklog(waiting, running)
    },

    rules: () => rules.read(send),

    changeRule: (target, change) => rules.change(send, target, change),
  }

  async function claimNamed(id: string, request: ClaimRequest, wanted: Wanted): Promise<JobRecord | undefined> {
    const { belowRunning } = wanted
    if (belowRunning !== undefined && !(await isBelow(send, schema, id, belowRunning))) return undefined
    const grant = (through?: Send) =>
      jobs.change(id, (job, now) => (isWanted(job, wanted) ? claim(job, request, now) : undefined), { send: through })
    const known = await rules.read(send)
    if (known.length === 0) return await grant()
    return await underLock(pool, schema, async (locked) => {
      const stored = await jobs.read(id, locked)
      return stored && !(await rules.holdBack(locked, known, stored.job)) ? await grant(locked) : undefined
    })
  }
}

/** Whether fewer other jobs of the job's application run. */
async function isBelow(send: Send, schema: string, id: string, running: number): Promise<boolean> {
  const [row] = await send(
    `SELECT count(*) FROM ${schema}.jobs AS other JOIN ${schema}.jobs AS job ON job.id = $1 AND other.app = job.app
      AND other.id <> job.id WHERE other.status = 'STARTED' AND NOT other.deleted`,
    [columnText(id)],
  )
  return Number(row?.[0]) < running
}

/** Claims of the next jobs. */
class ClaimsInTurn {
  readonly #pool: PostgresPool
  readonly #schema: string
  readonly #jobs: StoredJobs
  readonly #claimNext: ReturnType<typeof plannedCall>
  readonly #front = new ClaimFront()
  /** Whether the last claim found limits of running jobs. */
  #isLimited = false
  #claimsSinceTidying = 0
  #tidiedAt = -Infinity

  constructor(pool: PostgresPool, schema: string, jobs: StoredJobs) {
    this.#pool = pool
    this.#schema = schema
    this.#jobs = jobs
    this.#claimNext = plannedCall(pool, schema, claimNext(schema))
  }

  async claim(request: ClaimRequest, wanted: Wanted, max: number): Promise<JobRecord[]> {
    const claimed: JobRecord[] = []
    let look = firstLook
    for (;;) {
      const most = Math.min(max - claimed.length, mostAtOnce)
      const front = this.#front.next
      const { rows, isWaiting, mayBeMore } = await this.#next(request, wanted, { most, look, front })
      const jobs = this.#kept(rows, request)
      this.#front.note(front, jobs, { most, mayBeMore })
      claimed.push(...jobs)
      if (claimed.length >= max) break
      if (front) continue
      // A job of the rows that cannot be read is not asked for again.
      if (rows.length > 0 && (mayBeMore || claimed.length === 0)) continue
      if (rows.length === 0 && mayBeMore && look < longLook) look = longLook
      else if (claimed.length > 0 || !(isWaiting && (await this.#tidyAgain()))) break
    }
    if (this.#claimsSinceTidying >= claimsBetweenTidying && performance.now() - this.#tidiedAt >= tidiedAnywayMs)
      await this.#tidy()
    return claimed
  }

  #kept(rows: readonly Row[], { leaseMs }: ClaimRequest): JobRecord[] {
    return rows.flatMap((row) => {
      const [job] = this.#jobs.readable([row])
      if (!job?.lease) return []
      this.#claimsSinceTidying++
      this.#jobs.held.keep({ job, version: Number(row[0]) }, job.lease.until - Math.ceil(leaseMs))
      return [job]
    })
  }

  /** A failure does no harm: only speed depends on it, and later claims repeat it. */
  async #tidy(): Promise<void> {
    this.#claimsSinceTidying = 0
    this.#tidiedAt = performance.now()
    await tidyTurns(this.#pool, this.#schema).catch(() => {})
  }

  /** For jobs that wait and were not found: an older node may have entered them. False if that was done just now. */
  async #tidyAgain(): Promise<boolean> {
    if (performance.now() - this.#tidiedAt < tidiedAgainMs) return false
    await this.#tidy()
    return true
  }

  /** The rows of the jobs that were claimed, under the lock where there are limits. */
  async #next(request: ClaimRequest, wanted: Wanted, bounds: Bounds): Promise<Answer> {
    let answer = this.#isLimited ? undefined : await this.#ask(request, wanted, bounds, false)
    if (!answer || (answer.isLimited && answer.rows.length === 0))
      answer = await this.#ask(request, wanted, bounds, true)
    this.#isLimited = answer.isLimited
    return answer
  }

  async #ask(
    { owner, leaseMs, nonce = '', lapsedBefore }: ClaimRequest,
    { exceptApps = [], onlyApps, workflows, labels, belowRunning }: Wanted,
    { most, look, front }: Bounds,
    isLocked: boolean,
  ): Promise<Answer> {
    const values = [
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
      most,
      look,
      onlyApps?.map((app) => columnText(app)) ?? null,
      ...frontValues(front),
    ]
    const rows = await this.#claimNext(values, (work) =>
      isLocked ? underLock(this.#pool, this.#schema, work) : work(this.#jobs.sendPrepared),
    )
    const [, , , id, isLimited, isWaiting, mayBeMore] = rows[0] ?? []
    return {
      rows: id === null ? [] : rows.toSorted((a, b) => Number(a[7]) - Number(b[7])),
      isLimited: isLimited === 't',
      isWaiting: isWaiting === 't',
      mayBeMore: mayBeMore === 't',
    }
  }
}

interface Bounds {
  most: number
  /** Applications and jobs that are looked at beyond these. */
  look: number
  front: Front | undefined
}

interface Answer {
  rows: Row[]
  /** Whether running jobs are limited. */
  isLimited: boolean
  /** Whether there is a list with a job for the worker. */
  isWaiting: boolean
  /** Whether the claim may have ended early. */
  mayBeMore: boolean
}

/** In a transaction in which nobody else claims under limits. */
function underLock<Result>(pool: PostgresPool, schema: string, work: (send: Send) => Promise<Result>): Promise<Result> {
  return transaction(pool, async (client) => {
    await lockClaims(client, schema)
    return await work(sender(client))
  })
}
