import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

const restShare = 4
const longestRestMs = 50

/** Reports how long the work itself kept the event loop busy; without it, everything that ran meanwhile is counted. */
export type Spent = (ms: number) => void

/** Runs work on the terms of this process: it may wait its turn first, or rest afterwards. */
export type Turn = <Result>(work: (spent?: Spent) => Promise<Result>) => Promise<Result>

/** Does work, and says for how many milliseconds the event loop should then be left to others. */
export async function timed<Result>(
  work: (spent?: Spent) => Promise<Result>,
): Promise<{ result: Result; restMs: number }> {
  const before = performance.eventLoopUtilization()
  const startedAt = performance.now()
  let spentMs: number | undefined
  const working = work((ms) => (spentMs = ms))
  // A store may read synchronously, without a break.
  const atOnceMs = performance.now() - startedAt
  const result = await working
  const { active } = performance.eventLoopUtilization(before)
  return { result, restMs: restMs(active, spentMs === undefined ? undefined : atOnceMs + spentMs) }
}

/** After work that kept the event loop busy, leaves it to others for four times as long. */
export const rested: Turn = async (work) => {
  const { result, restMs } = await timed(work)
  await delay(restMs)
  return result
}

/** How long to rest after `active` milliseconds in which the event loop was busy, `spent` of them with the work. */
export function restMs(active: number, spent = active): number {
  return Math.min(longestRestMs, Math.min(active, spent) * restShare)
}
