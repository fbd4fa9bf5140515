import type { Worker } from '../../../src/core/engine/workers/worker.js'

/** An idle worker. */
export const worker = (index: number, about: Partial<Worker> = {}): Worker => ({
  owner: `worker-${index}`,
  address: `a${index}`,
  workflows: ['test/stems'],
  labels: ['gpu'],
  state: 'open',
  warm: [],
  slots: 1,
  running: 0,
  startedAt: 0,
  seenAt: 0,
  durations: {},
  ...about,
})
