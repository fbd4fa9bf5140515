import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

const restShare = 4
const longestRestMs = 50

/** Runs work in the way in which this process is to do it. */
export type Turn = <Result>(work: () => Promise<Result>) => Promise<Result>

/** Leaves the event loop to others, after work that kept it busy, for four times as long. */
export const rested: Turn = async (work) => {
  const before = performance.eventLoopUtilization()
  const result = await work()
  const { active } = performance.eventLoopUtilization(before)
  await delay(Math.min(longestRestMs, active * restShare))
  return result
}
