import { vi } from 'vitest'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import type { EngineParts } from '../../src/core/engine/engine.js'
import type { EngineSettings } from '../../src/core/engine/options.js'
import type { JobQueue } from '../../src/core/engine/ports/job-queue.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { testEngine } from './harness.js'

/** Options without any sweep except the one at the start. */
export const never = { sweepIntervalMs: 3_600_000 }
export const soon = () => new Promise((resolve) => setTimeout(resolve, 20))

/** A worker with one lane, or more, and a queue that delivers only the test's notifications. */
export function notified(
  workflow: Workflow,
  traits: Partial<JobQueue['traits']> = {},
  settings: EngineSettings = {},
  concurrency = 1,
  parts: Partial<EngineParts> = {},
) {
  const notify = vi.fn(async () => {})
  let listener = async () => {}
  const queue: JobQueue = {
    ...memoryQueue(),
    traits: { scope: 'process', ...traits },
    notify,
    subscribe: async (heard) => {
      listener = heard
      return { stop: async () => {} }
    },
  }
  const worker = testEngine(
    workflow,
    { ...settings, dispatch: { concurrency, ...never, ...settings.dispatch } },
    { ...parts, queue },
  )
  return { ...worker, notify, hear: () => listener() }
}
