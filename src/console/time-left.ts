import { useEffect, useRef, useState } from 'preact/hooks'
import type { Job } from '../client/client.js'

interface Mark {
  atMs: number
  progress: number
}

/** A separation's speed changes little, but its first steps (fetching, loading) are not like the rest. */
const windowMs = 20_000
const leastShare = 0.002

/**
 * Estimates the time left from the progress of the last seconds; on slow jobs, of the last steps, however old they are.
 */
export class TimeLeft {
  #marks: Mark[] = []
  /** When the job came to what is seen first, nobody here knows. */
  #newest: number | undefined

  /** @param atMs of a clock that only goes forward */
  observe(progress: number, atMs: number): void {
    const before = this.#newest
    this.#newest = progress
    if (before === undefined || before === progress) return
    // A new attempt begins from the start.
    if (progress < before) this.#marks = []
    this.#marks.push({ atMs, progress })
    // Only as long as what is left still shows a share of the work.
    while (this.#canDropFirst(atMs)) this.#marks.shift()
  }

  /** Seconds, or undefined while there is too little to tell. */
  seconds(nowMs: number): number | undefined {
    const [first, last] = [this.#marks.at(0), this.#marks.at(-1)]
    if (!first || !last || last.progress - first.progress < leastShare) return undefined
    const msPerShare = (last.atMs - first.atMs) / (last.progress - first.progress)
    return Math.max(0, (1 - last.progress) * msPerShare - (nowMs - last.atMs)) / 1000
  }

  #canDropFirst(nowMs: number): boolean {
    const [, second] = this.#marks
    const last = this.#marks.at(-1)
    if (!second || !last || this.#marks.length <= 2) return false
    return second.atMs < nowMs - windowMs && last.progress - second.progress >= leastShare
  }
}

/** Seconds left of a running job, looked at anew each second. */
export function useTimeLeft({ status, progress }: Pick<Job, 'status' | 'progress'>): number | undefined {
  const estimate = useRef(new TimeLeft())
  const [, setNow] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  if (status !== 'STARTED') return undefined
  estimate.current.observe(progress, performance.now())
  return estimate.current.seconds(performance.now())
}
