import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

const restShare = 4
const longestRestMs = 50

/** Tells how long the work itself kept the event loop busy; otherwise all that happened meanwhile counts as its own. */
export type Spent = (ms: number) => void

/** Runs work in the way in which this process is to do it. */
export type Turn = <Result>(work: (spent?: Spent) => Promise<Result>) => Promise<Result>

/** Leaves the event loop to others, after work that kept it busy, for four times as long. */
export const rested: Turn = async (work) => {
  const before = performance.eventLoopUtilization()
  const startedAt = performance.now()
  let told: number | undefined
  const working = work((ms) => (told = ms))
  // A store may read at once, without a break.
  const atOnceMs = performance.now() - startedAt
  const result = await working
  const { active } = performance.eventLoopUtilization(before)
  await delay(restMs(active, told === undefined ? undefined : atOnceMs + told))
  return result
}

/** How long to rest after `active` milliseconds in which the event loop was busy, `spent` of them with the work. */
export function restMs(active: number, spent = active): number {
  return Math.min(longestRestMs, Math.min(active, spent) * restShare)
}
