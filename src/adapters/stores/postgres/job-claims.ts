import type { JobRecord } from '../../../core/engine/job/job.js'
import { claim, type ClaimRequest } from '../../../core/engine/job/transitions.js'
import { type Backlog, mostCounted } from '../../../core/engine/ports/job-store.js'
import type { JobClaims } from '../shared/method-groups.js'
import { isWanted, type Wanted } from '../shared/wanted.js'
import { ClaimFront, type Front, frontValues } from './claim-front.js'
import { claimNext, mostAtOnce } from './claim-function.js'
import { type PostgresPool, type Row, type Send, sender, transaction } from './database.js'
import { columnText, nowSql } from './job-row.js'
import { plannedCall } from './planned-functions.js'
import { aheadStatement, queueInTurn, runningStatement, schedulingRules } from './scheduling-rules.js'
import type { StoredJobs } from './stored-jobs.js'
import { lockClaims, tidyTurns, waitingLists } from './turns.js'
import { mergedBacklog } from '../shared/merged-backlog.js'

/** Shortest interval of tidying turns if jobs wait that a claim did not find. */
const tidiedAgainMs = 10_000
/**
 * Shortest interval of tidying anyway, and fewest claims before it: rows outlive the jobs of an application, and all
 * claims overlook jobs that an older node has added without a row.
 */
const tidiedAnywayMs = 60_000
const claimsBetweenTidying = 50
/** Rows that a claim looks at beyond those wanted: other claims may be taking some. */
const firstLook = 4
const longLook = 1000

type WantedClaim = ClaimRequest & Wanted

/** Claims, and the order of waiting jobs. */
export function jobClaims(pool: PostgresPool, schema: string, jobs: StoredJobs): JobClaims {
  const { send } = jobs
  const rules = schedulingRules(schema)
  const claimInTurn = claimsInTurn(pool, schema, jobs)
  const aheadSql = aheadStatement(schema)
  const runningSql = runningStatement(schema)
  const backlogSql = backlogStatements(schema)
  const nextInTurn = plannedCall(pool, schema, queueInTurn(schema))

  return {
    claim: async ({ id, ...request }) =>
      id === undefined ? (await claimInTurn(request, 1))[0] : await claimNamed(id, request),

    claimSeveral: (request, { max }) => claimInTurn(request, max),

    async ahead(id, { max }) {
      const [row] = await send(aheadSql, [columnText(id), max])
      return row && Number(row[0])
    },

    async queue({ max }) {
      const values = (unreadable: readonly string[]) => [Math.max(max, 0), unreadable]
      const [running, waiting] = await Promise.all([
        jobs.select((unreadable) => ({ text: runningSql, values: values(unreadable) })),
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

  async function claimNamed(id: string, request: WantedClaim): Promise<JobRecord | undefined> {
    const { belowRunning } = request
    if (belowRunning !== undefined && !(await isBelow(send, schema, id, belowRunning))) return undefined
    const grant = (through?: Send) =>
      jobs.change(id, (job, now) => (isWanted(job, request) ? claim(job, request, now) : undefined), { send: through })
    const known = await rules.read(send)
    if (known.length === 0) return await grant()
    return await underLock(pool, schema, async (locked) => {
      const stored = await jobs.read(id, locked)
      return stored && !(await rules.holdBack(locked, known, stored.job)) ? await grant(locked) : undefined
    })
  }
}

/** Whether fewer than `running` other jobs of the job's application run. */
async function isBelow(send: Send, schema: string, id: string, running: number): Promise<boolean> {
  const [row] = await send(
    `SELECT count(*) FROM ${schema}.jobs AS other JOIN ${schema}.jobs AS job ON job.id = $1 AND other.app = job.app
      AND other.id <> job.id WHERE other.status = 'STARTED' AND NOT other.deleted`,
    [columnText(id)],
  )
  return Number(row?.[0]) < running
}

/** Claims the next jobs, at most `max`. */
function claimsInTurn(pool: PostgresPool, schema: string, jobs: StoredJobs) {
  const callNext = plannedCall(pool, schema, claimNext(schema))
  const front = new ClaimFront()
  /** Whether the last claim found limits of running jobs. */
  let isLimited = false
  let claimsSinceTidying = 0
  let tidiedAt = -Infinity

  return async function claim(request: WantedClaim, max: number): Promise<JobRecord[]> {
    const claimed: JobRecord[] = []
    let look = firstLook
    for (;;) {
      const most = Math.min(max - claimed.length, mostAtOnce)
      const begin = front.next
      const { rows, isWaiting, mayBeMore } = await next(request, { most, look, front: begin })
      const found = kept(rows, request)
      front.note(begin, found, { most, mayBeMore })
      claimed.push(...found)
      if (claimed.length >= max) break
      if (begin) continue
      // Unreadable jobs of the rows are not returned again.
      if (rows.length > 0 && (mayBeMore || claimed.length === 0)) continue
      if (rows.length === 0 && mayBeMore && look < longLook) look = longLook
      else if (claimed.length > 0 || !(isWaiting && (await tidyAgain()))) break
    }
    if (claimsSinceTidying >= claimsBetweenTidying && performance.now() - tidiedAt >= tidiedAnywayMs) await tidy()
    return claimed
  }

  function kept(rows: readonly Row[], { leaseMs }: ClaimRequest): JobRecord[] {
    return rows.flatMap((row) => {
      const [job] = jobs.readable([row])
      if (!job?.lease) return []
      claimsSinceTidying++
      jobs.held.keep({ job, version: Number(row[0]) }, job.lease.until - Math.ceil(leaseMs))
      return [job]
    })
  }

  /** A failure does no harm: only speed depends on it, and later claims repeat it. */
  async function tidy(): Promise<void> {
    claimsSinceTidying = 0
    tidiedAt = performance.now()
    await tidyTurns(pool, schema).catch(() => {})
  }

  /** For waiting jobs that were not found: an older node may have entered them. False if this was done just now. */
  async function tidyAgain(): Promise<boolean> {
    if (performance.now() - tidiedAt < tidiedAgainMs) return false
    await tidy()
    return true
  }

  /** Claims jobs, under the lock if there are limits, and returns their rows. */
  async function next(request: WantedClaim, bounds: Bounds): Promise<Answer> {
    let answer = isLimited ? undefined : await ask(request, bounds, false)
    if (!answer || (answer.isLimited && answer.rows.length === 0)) answer = await ask(request, bounds, true)
    isLimited = answer.isLimited
    return answer
  }

  async function ask(request: WantedClaim, { most, look, front: begin }: Bounds, isLocked: boolean): Promise<Answer> {
    const { owner, leaseMs, nonce = '', lapsedBefore } = request
    const { exceptApps = [], onlyApps, workflows, labels, belowRunning } = request
    const values = [
      columnText(owner),
      Math.ceil(leaseMs),
      nonce,
      exceptApps.map((app) => columnText(app)),
      jobs.unreadable,
      workflows?.map((workflow) => columnText(workflow)) ?? null,
      isLocked,
      labels ?? null,
      lapsedBefore === undefined ? null : Math.floor(lapsedBefore),
      belowRunning ?? null,
      most,
      look,
      onlyApps?.map((app) => columnText(app)) ?? null,
      ...frontValues(begin),
    ]
    const rows = await callNext(values, (work) => (isLocked ? underLock(pool, schema, work) : work(jobs.sendPrepared)))
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
  /** Applications and jobs that are looked at in addition. */
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

/** Works in a transaction in which no one else claims under limits. */
function underLock<Result>(pool: PostgresPool, schema: string, work: (send: Send) => Promise<Result>): Promise<Result> {
  return transaction(pool, async (client) => {
    await lockClaims(client, schema)
    return await work(sender(client))
  })
}

/** For `JobStore.backlog`. */
export function backlogStatements(schema: string) {
  return {
    waiting: `
      SELECT lane.workflow, lane.pool, due.jobs, ${nowSql} - due.first
      FROM (${waitingLists(schema)}) AS lane CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, min(waiting_since) AS first FROM (
          SELECT waiting_since FROM ${schema}.jobs AS job WHERE job.workflow = lane.workflow AND job.pool = lane.pool
            AND waiting_since <= ${nowSql}
          ORDER BY waiting_since LIMIT ${mostCounted}
        ) AS counted
      ) AS due WHERE due.jobs > 0`,
    running: `
      SELECT workflow, pool, count(*) FROM (
        SELECT workflow, pool FROM ${schema}.jobs WHERE lease_bucket IS NOT NULL LIMIT ${mostCounted}
      ) AS running GROUP BY workflow, pool`,
  }
}

export function readBacklog(waiting: readonly Row[], running: readonly Row[]): Backlog[] {
  return mergedBacklog(
    waiting.map(([workflow, pool, queued, oldestMs]) => ({
      workflow: workflow ?? '',
      pool: pool ?? '',
      queued: Number(queued),
      oldestMs: Math.max(0, Number(oldestMs)),
    })),
    running.map(([workflow, pool, count]) => ({ workflow: workflow ?? '', pool: pool ?? '', running: Number(count) })),
  )
}
