import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

const restShare = 4
const longestRestMs = 50

/** Reports how long the work itself blocked the event loop. Without a report, all that ran meanwhile is counted. */
export type Spent = (ms: number) => void

/** Runs work without starving other work of this process: may wait before it or pause after it. */
export type Turn = <Result>(work: (spent?: Spent) => Promise<Result>) => Promise<Result>

/** Does work, and returns for how many milliseconds to pause afterwards, so that other work can run. */
export async function timed<Result>(
  work: (spent?: Spent) => Promise<Result>,
): Promise<{ result: Result; restMs: number }> {
  const before = performance.eventLoopUtilization()
  const startedAt = performance.now()
  let spentMs: number | undefined
  const working = work((ms) => (spentMs = ms))
  // A store may read synchronously and block the event loop.
  const atOnceMs = performance.now() - startedAt
  const result = await working
  const { active } = performance.eventLoopUtilization(before)
  return { result, restMs: restMs(active, spentMs === undefined ? undefined : atOnceMs + spentMs) }
}

/** After work that blocked the event loop, pauses for four times as long, so that other work can run. */
export const rested: Turn = async (work) => {
  const { result, restMs } = await timed(work)
  await delay(restMs)
  return result
}

/** How long to pause after `active` milliseconds in which the event loop was busy, `spent` of them with the work. */
export function restMs(active: number, spent = active): number {
  return Math.min(longestRestMs, Math.min(active, spent) * restShare)
}
