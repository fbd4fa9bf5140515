import type { JobRecord } from '../job/job.js'
import { isHeldBack, type RuleTarget, type SchedulingRule } from '../job/scheduling.js'
import { serves, type Worker } from '../workers/worker.js'

type Placed = Pick<JobRecord, 'id' | 'app' | 'workflow' | 'pool' | 'lease'>

/** The current work of a store. Times are milliseconds. */
export interface QueueState {
  running: readonly { job: Placed; leftMs: number }[]
  /** In the order of claims. */
  waiting: readonly { job: Placed; workMs: number }[]
  workers: readonly Worker[]
  rules: readonly SchedulingRule[]
}

interface Slot {
  /** `undefined`: a host that runs jobs without being a worker. */
  worker: Worker | undefined
  freeAt: number
}

/** Start and end of each waiting job, from `now` on, if the slots take the jobs in order. */
export function forecast(
  { running, waiting, workers, rules }: QueueState,
  now: number,
): Map<string, { startsAt: number; endsAt: number }> {
  const found = new Map<string, { startsAt: number; endsAt: number }>()
  const active = running.map(({ job, leftMs }) => ({ job, endsAt: now + leftMs }))
  const slots = slotsOf(workers, active, now)
  const pending = [...waiting]
  while (pending.length > 0 && slots.length > 0) {
    const slot = slots.reduce((first, other) => (other.freeAt < first.freeAt ? other : first))
    const at = slot.freeAt
    const begun = active.filter(({ endsAt }) => endsAt > at)
    const able = pending.filter(({ job }) => !slot.worker || serves(slot.worker, job))
    const next = able.find(({ job }) => !isHeld(job, rules, begun))
    if (next) {
      const endsAt = at + next.workMs
      found.set(next.job.id, { startsAt: at, endsAt })
      active.push({ job: next.job, endsAt })
      pending.splice(pending.indexOf(next), 1)
      slot.freeAt = endsAt
      continue
    }
    // A job held back by a limit can start when a job that counts against the limit has ended.
    const freed = able.length > 0 ? Math.min(...begun.map(({ endsAt }) => endsAt)) : Infinity
    if (freed === Infinity) slots.splice(slots.indexOf(slot), 1)
    else slot.freeAt = freed
  }
  return found
}

function slotsOf(workers: readonly Worker[], active: readonly { job: Placed; endsAt: number }[], now: number): Slot[] {
  const left = [...active]
  const slots = workers.flatMap((worker) =>
    Array.from({ length: worker.slots }, (): Slot => {
      const index = left.findIndex(({ job }) => job.lease?.owner === worker.owner)
      const [taken] = index < 0 ? [] : left.splice(index, 1)
      return { worker, freeAt: taken?.endsAt ?? now }
    }),
  )
  if (workers.length > 0) return slots.filter(({ worker }) => worker?.state === 'open')
  return left.map(({ endsAt }) => ({ worker: undefined, freeAt: endsAt }))
}

function isHeld(job: Placed, rules: readonly SchedulingRule[], begun: readonly { job: Placed }[]): boolean {
  if (rules.length === 0) return false
  const running = (target: RuleTarget) =>
    begun.filter(
      ({ job: other }) =>
        target.kind === 'deployment' || (target.kind === 'application' ? other.app : other.workflow) === target.id,
    ).length
  return isHeldBack(rules, { ...job, status: 'QUEUED' }, running)
}
