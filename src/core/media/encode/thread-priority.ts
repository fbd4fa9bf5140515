import { readlinkSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'

/**
 * The scheduler gives a thread about a third of the time of one wanting the same processor that is this much less nice.
 */
const steps = 5

/**
 * Makes this thread yield to the others of the process. What the network loses to an encoder, the whole separation
 * waits for; encoders may lag behind. Only Linux has thread priorities; elsewhere, and where the system forbids it,
 * nothing happens.
 */
export function yieldToOtherThreads(): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(thread, Math.min(getPriority(thread) + steps, constants.priority.PRIORITY_LOW))
  } catch {
    // It only takes longer.
  }
}
