import type { Backlog } from '../../../core/engine/ports/job-store.js'

type Waiting = Omit<Backlog, 'running'>
type Running = Pick<Backlog, 'workflow' | 'pool' | 'running'>

/** Merges waiting and running jobs by workflow and pool, in the order of these. */
export function mergedBacklog(waiting: readonly Waiting[], running: readonly Running[]): Backlog[] {
  const keyOf = ({ workflow, pool }: Pick<Backlog, 'workflow' | 'pool'>) => `${workflow}\n${pool}`
  const lanes = new Map(waiting.map((lane) => [keyOf(lane), { ...lane, running: 0 }]))
  for (const { workflow, pool, running: count } of running) {
    const key = keyOf({ workflow, pool })
    lanes.set(key, { ...(lanes.get(key) ?? { workflow, pool, queued: 0, oldestMs: 0 }), running: count })
  }
  return [...lanes.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, lane]) => lane)
}
