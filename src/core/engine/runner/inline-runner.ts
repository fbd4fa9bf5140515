import { defaultLogger, type Logger, steadyLogger } from '../ports/logger.js'
import type { Runner, RunOptions, WorkOrder, WorkProgress, WorkResult } from '../ports/runner.js'
import { untilAborted } from '../workflow/until-aborted.js'
import type { Workflow } from '../workflow/workflow.js'
import type { execute } from './execute.js'
import { RunGroup } from './run-group.js'
import { workflowFromModule } from './workflow-module.js'

/** Cached: even for a loaded module, `import()` takes a tenth of the time of an empty job. */
let loadedExecute: typeof execute | undefined
const loadExecute = async () => (loadedExecute ??= (await import('./execute.js')).execute)

/**
 * Runs every order in this process: for tests and for hosts with light workflows. A stage that blocks the thread blocks
 * the host, and an aborted stage that ignores its signal continues in the background; `processRunner` avoids both.
 */
export function inlineRunner(options: { resolve(workflowId: string): Workflow; logger?: Logger }): Runner {
  const { resolve } = options
  const logger = steadyLogger(options.logger ?? defaultLogger)
  const runs = new RunGroup()

  return {
    run: (order, options) =>
      runs.run(options.signal, (signal) => {
        const workflow = async () =>
          order.module === null ? resolve(order.workflow) : await workflowFromModule(order.module, order.settings)
        return runInline(workflow, order, { ...options, signal }, logger)
      }),
    status: () => ({ slots: runs.size + 1, busy: runs.size, restarts: 0 }),
    close: async () => runs.close(),
  }
}

/** Runs the order here. An abort rejects at once, but code that ignores its signal continues. */
export function runInline(
  workflow: () => Promise<Workflow>,
  order: WorkOrder,
  options: RunOptions,
  logger: Logger,
): Promise<WorkResult> {
  const { signal, onProgress } = options
  const report = (progress: WorkProgress) => {
    if (!signal.aborted) reportProgress(progress, onProgress, order.jobId, logger)
  }
  const work = async () => {
    const found = await workflow()
    const run = await loadExecute()
    return await run(found, order, { ...options, onProgress: report })
  }
  return untilAborted(work(), signal)
}

/** Calls the host's progress listener and logs its error, so that a faulty listener does not end the run. */
export function reportProgress(
  progress: WorkProgress,
  onProgress: RunOptions['onProgress'],
  jobId: string | undefined,
  logger: Logger,
): void {
  try {
    onProgress(progress)
  } catch (error) {
    logger.warn({ jobId, err: error }, 'a progress listener threw')
  }
}
