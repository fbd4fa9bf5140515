import type { JobChange } from '../../../core/engine/job/transitions.js'

/**
 * Changes that a power cut may undo: the next worker or the sweep makes them again, and no caller relies on them. They
 * do not wait for the disk. Like all changes they survive the death of this process.
 */
export const repeatable: readonly JobChange['kind'][] = [
  'heartbeat',
  'requeue',
  'release',
  'hasten',
  'miss',
  'expire',
  'beginDelivery',
  'deferDelivery',
  'endDelivery',
]
