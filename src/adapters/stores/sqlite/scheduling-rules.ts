import type { JobRecord } from '../../../core/engine/job/job.js'
import {
  idOf,
  limitOfAll,
  type RuleChange,
  type RuleTarget,
  type SchedulingRule,
} from '../../../core/engine/job/scheduling.js'
import { ruleOfRow } from '../shared/rule-of-row.js'
import { mayBegin, type Wanted } from '../shared/wanted.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** Conditions of a claim, and the rules. */
export type WantedByRules = Wanted & { rules: readonly SchedulingRule[] }

interface Row {
  kind: string
  id: string
  state: string
  max_running: number | null
}

/** The rules of `JobStore` in a table of their own. */
export function schedulingRules(database: SqliteDatabase) {
  const running = (target: RuleTarget) => runningOf(database, target)
  return {
    read(): SchedulingRule[] {
      const rows = database.all<Row>(
        "SELECT kind, id, state, max_running FROM rules WHERE state <> 'open' OR max_running IS NOT NULL",
      )
      return rows.map(({ kind, id, state, max_running: maxRunning }) => ruleOfRow(kind, id, state, maxRunning))
    },

    change(target: RuleTarget, { state, maxRunning }: RuleChange): void {
      database.write(
        `INSERT INTO rules (kind, id, state, max_running) VALUES (?, ?, coalesce(?, 'open'), ?)
        ON CONFLICT (kind, id) DO UPDATE SET state = coalesce(?, state), 
          max_running = iif(?, excluded.max_running, max_running)`,
        [target.kind, idOf(target), state ?? null, maxRunning ?? null, state ?? null, maxRunning === undefined ? 0 : 1],
      )
    },

    /** Whether a job is among those wanted, and no rule holds it back. */
    mayBegin: (job: JobRecord, wanted: WantedByRules) => mayBegin(job, wanted, running),

    /** Targets closed to queued jobs: applications, and workflows (or all but the wanted ones); or everything. */
    closed({ exceptApps = [], workflows, belowRunning, rules }: WantedByRules) {
      const held = rules
        .filter(
          ({ target, state, maxRunning }) =>
            state === 'paused' || (maxRunning !== null && running(target) >= maxRunning),
        )
        .map(({ target }) => target)
      const idsOf = (kind: RuleTarget['kind']) => held.filter((target) => target.kind === kind).map(idOf)
      const closedWorkflows = idsOf('workflow')
      return {
        isAnyClosed: belowRunning === 0 || held.some(({ kind }) => kind === 'deployment'),
        apps: [
          ...exceptApps,
          ...idsOf('application'),
          ...appsFrom(database, belowRunning),
          ...appsAtLimit(database, rules),
        ],
        workflows: workflows
          ? { names: workflows.filter((name) => !closedWorkflows.includes(name)), areWanted: true }
          : { names: closedWorkflows, areWanted: false },
      }
    },
  }
}

/** Applications with at least this many running jobs. */
function appsFrom(database: SqliteDatabase, least: number | undefined): string[] {
  if (least === undefined) return []
  const text = "SELECT app FROM jobs WHERE status = 'STARTED' AND deleted = 0 GROUP BY app HAVING count(*) >= ?"
  return database.all<{ app: string }>(text, [least]).map(({ app }) => app)
}

/** Applications without a limit of their own that have reached the limit for all. */
function appsAtLimit(database: SqliteDatabase, rules: readonly SchedulingRule[]): string[] {
  const limited = rules.filter(({ target, maxRunning }) => target.kind === 'application' && maxRunning !== null)
  const own = limited.map(({ target }) => idOf(target))
  return appsFrom(database, limitOfAll(rules) ?? undefined).filter((app) => !own.includes(app))
}

function runningOf(database: SqliteDatabase, target: RuleTarget): number {
  const count = (condition: string, ...values: string[]) =>
    database.get<{ count: number }>(`SELECT count(*) AS count FROM jobs WHERE ${condition}`, values)?.count ?? 0
  switch (target.kind) {
    case 'deployment':
      return count('lapses_at IS NOT NULL')
    case 'application':
      return count("status = 'STARTED' AND app = ? AND deleted = 0", target.id)
    case 'workflow':
      return count('lapses_at IS NOT NULL AND workflow = ?', target.id)
    default:
      return target satisfies never
  }
}
