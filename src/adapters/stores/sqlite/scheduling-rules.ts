import { z } from 'zod'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { servesPool } from '../../../core/engine/job/pool.js'
import {
  idOf,
  isHeldBack,
  limitOfAll,
  type RuleChange,
  type RuleTarget,
  ruleStateSchema,
  type SchedulingRule,
  schedulingRuleSchema,
} from '../../../core/engine/job/scheduling.js'
import type { Claimable } from '../../../core/engine/ports/job-store.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** What a claim asks for, under the rules. */
export type Wanted = Omit<Claimable, 'id'> & { rules: readonly SchedulingRule[] }

interface Row {
  kind: string
  id: string
  state: string
  max_running: number | null
}

/** The rules of `JobStore` in a table of their own. */
export class SchedulingRules {
  readonly #database: SqliteDatabase

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  read(): SchedulingRule[] {
    const rows = this.#database.all<Row>(
      "SELECT kind, id, state, max_running FROM rules WHERE state <> 'open' OR max_running IS NOT NULL",
    )
    return rows.map(({ kind, id, state, max_running: maxRunning }) =>
      schedulingRuleSchema.parse({
        target: kind === 'deployment' ? { kind } : { kind, id },
        state: ruleStateSchema.parse(state),
        maxRunning,
      }),
    )
  }

  change(target: RuleTarget, { state, maxRunning }: RuleChange): void {
    this.#database.write(
      `INSERT INTO rules (kind, id, state, max_running) VALUES (?, ?, coalesce(?, 'open'), ?)
      ON CONFLICT (kind, id) DO UPDATE SET state = coalesce(?, state), 
        max_running = iif(?, excluded.max_running, max_running)`,
      target.kind,
      idOf(target),
      state ?? null,
      maxRunning ?? null,
      state ?? null,
      maxRunning === undefined ? 0 : 1,
    )
  }

  /** Whether a job is among those wanted, and no rule holds it back. */
  mayBegin(job: JobRecord, { exceptApps, onlyApps, workflows, labels, belowRunning, rules }: Wanted): boolean {
    if (exceptApps?.includes(job.app) || onlyApps?.includes(job.app) === false) return false
    if (workflows?.includes(job.workflow) === false) return false
    if (!servesPool(labels, job.pool)) return false
    if (belowRunning !== undefined) {
      const others = this.#running({ kind: 'application', id: job.app }) - (job.status === 'STARTED' ? 1 : 0)
      if (others >= belowRunning) return false
    }
    return rules.length === 0 || !isHeldBack(rules, job, (target) => this.#running(target))
  }

  /** What is closed to queued jobs: applications, and workflows (or all but the wanted ones); or everything. */
  closed({ exceptApps = [], workflows, belowRunning, rules }: Wanted): {
    isAnyClosed: boolean
    apps: string[]
    workflows: { names: string[]; areWanted: boolean }
  } {
    const held = rules
      .filter(
        ({ target, state, maxRunning }) =>
          state === 'paused' || (maxRunning !== null && this.#running(target) >= maxRunning),
      )
      .map(({ target }) => target)
    const idsOf = (kind: RuleTarget['kind']) => held.filter((target) => target.kind === kind).map(idOf)
    const closedWorkflows = idsOf('workflow')
    return {
      isAnyClosed: belowRunning === 0 || held.some(({ kind }) => kind === 'deployment'),
      apps: [...exceptApps, ...idsOf('application'), ...this.#appsFrom(belowRunning), ...this.#appsAtLimit(rules)],
      workflows: workflows
        ? { names: workflows.filter((name) => !closedWorkflows.includes(name)), areWanted: true }
        : { names: closedWorkflows, areWanted: false },
    }
  }

  /** Applications with at least this many running jobs. */
  #appsFrom(running: number | undefined): string[] {
    if (running === undefined) return []
    const text = "SELECT app FROM jobs WHERE status = 'STARTED' AND deleted = 0 GROUP BY app HAVING count(*) >= ?"
    return this.#database.all<{ app: string }>(text, running).map(({ app }) => app)
  }

  /** Applications without a limit of their own that have reached the limit for all. */
  #appsAtLimit(rules: readonly SchedulingRule[]): string[] {
    const limited = rules.filter(({ target, maxRunning }) => target.kind === 'application' && maxRunning !== null)
    const own = limited.map(({ target }) => idOf(target))
    return this.#appsFrom(limitOfAll(rules) ?? undefined).filter((app) => !own.includes(app))
  }

  #running(target: RuleTarget): number {
    const running = (condition: string, ...values: string[]) =>
      z
        .object({ count: z.number() })
        .parse(this.#database.get(`SELECT count(*) AS count FROM jobs WHERE ${condition}`, ...values)).count
    switch (target.kind) {
      case 'deployment':
        return running('lapses_at IS NOT NULL')
      case 'application':
        return running("status = 'STARTED' AND app = ? AND deleted = 0", target.id)
      case 'workflow':
        return running('lapses_at IS NOT NULL AND workflow = ?', target.id)
      default:
        return target satisfies never
    }
  }
}
