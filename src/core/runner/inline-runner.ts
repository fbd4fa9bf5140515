import { silentLogger, type Logger } from '../ports/logger.js'
import type { RunOptions, Runner, WorkOrder, WorkResult } from '../ports/runner.js'
import type { Workflow } from '../workflow/workflow.js'
import { execute } from './execute.js'
import { RunGroup } from './run-group.js'
import { workflowFromModule } from './workflow-module.js'

/**
 * Runs every order in this process: for tests and for hosts whose workflows are light. A stage that blocks the thread blocks the
 * host, and an aborted stage that ignores its signal goes on unseen; `processRunner` has neither fault.
 */
export function inlineRunner(options: { resolve(workflowId: string): Workflow; logger?: Logger }): Runner {
  const { resolve, logger = silentLogger } = options
  const runs = new RunGroup()

  return {
    run: (order, { signal, onProgress }) =>
      runs.run(signal, async (ending) => {
        const workflow = order.module === null ? resolve(order.workflow) : await workflowFromModule(order.module, order.settings)
        return await runInline(workflow, order, { signal: ending, onProgress }, logger)
      }),
    status: () => ({ slots: runs.size + 1, busy: runs.size, restarts: 0 }),
    close: async () => runs.close(),
  }
}

/** Runs the stages here. An abort rejects at once, though code that ignores its signal cannot be stopped. */
export async function runInline(workflow: Workflow, order: WorkOrder, options: RunOptions, logger: Logger): Promise<WorkResult> {
  const { signal, onProgress } = options
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
  })
  const result = execute(workflow, order, {
    signal,
    onProgress(progress) {
      if (signal.aborted) return
      try {
        onProgress(progress)
      } catch (error) {
        logger.warn({ jobId: order.jobId, error }, 'a progress listener threw')
      }
    },
  })
  try {
    return await Promise.race([result, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
