import { readlinkSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'

/**
 * A thread that is this much nicer gets about a third of the time of a thread that competes for the same processor.
 */
const steps = 5

/**
 * Lowers the priority of this thread. Time that the network loses to an encoder delays the whole separation, whereas
 * encoders may lag behind. Only Linux has thread priorities; elsewhere, and where the system forbids it, nothing
 * happens.
 */
export function yieldToOtherThreads(): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(thread, Math.min(getPriority(thread) + steps, constants.priority.PRIORITY_LOW))
  } catch {
    // Encoding only takes longer.
  }
}
