import type { JobChange } from '../../../core/engine/job/transitions.js'

/**
 * Whether a commit waits for the disk. `durable`: it survives a power cut. `quick`: it survives the death of this process, and a
 * failure of the database's machine may forget it, with everything after it; it never damages anything.
 */
export type Commit = 'durable' | 'quick'

/** Which change may be forgotten: those that the next worker or the sweep makes again, having answered nobody. */
export const commits: Record<JobChange['kind'], Commit> = {
  heartbeat: 'quick',
  succeed: 'durable',
  fail: 'durable',
  requeue: 'quick',
  cancel: 'durable',
  miss: 'quick',
  delete: 'durable',
  expire: 'quick',
  beginDelivery: 'quick',
  endDelivery: 'quick',
}
