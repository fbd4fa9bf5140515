import { z } from 'zod'
import { invalidOptions } from '../errors.js'
import { type ChildOptions, childOptionsSchema, nicenessSchema } from '../options.js'
import { Shares } from '../limits/shares.js'
import { defaultLogger, isLogger, type Logger, steadyLogger } from '../ports/logger.js'
import type { Runner, RunOptions, WorkResult } from '../ports/runner.js'
import type { Workflow } from '../workflow/workflow.js'
import { runInline } from './inline-runner.js'
import { ProcessSlot } from './process-slot.js'
import type { HostRequest } from './protocol.js'
import { RunGroup } from './run-group.js'
import { checkInput, firstIssueText } from '../workflow/check-input.js'

export interface ProcessRunnerOptions extends ChildOptions {
  /** Returns the workflow of an order without a module; such orders run in this process. */
  resolve(workflowId: string): Workflow
  /** Number of child processes, each with one order at a time. Default: 1, as a network uses all cores but one. */
  slots?: number
  /** Niceness of the children, -20..19. Default: 10, so that the host stays responsive. */
  niceness?: number
  logger?: Logger
}

const optionsSchema = childOptionsSchema.extend({
  resolve: z.custom<ProcessRunnerOptions['resolve']>(
    (value) => typeof value === 'function',
    'must be a function that returns the workflow with an id',
  ),
  slots: z.number().int().positive().default(1),
  niceness: nicenessSchema,
  logger: z.custom<Logger>(isLogger, 'must have the methods debug, info, warn and error').optional(),
})

/**
 * Runs orders in child processes, because inference blocks its thread and cannot be stopped in a worker thread without
 * ending the host. Children start when first needed and stay warm; orders beyond the slots queue.
 *
 * An idle child does not keep the host's process alive, and no child outlives it.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the option and what it expects
 */
export function processRunner(options: ProcessRunnerOptions): Runner {
  const checked = checkInput(optionsSchema, options)
  if (!checked.success) {
    throw invalidOptions(`processRunner: ${firstIssueText(checked, 'options')}.`)
  }
  const { resolve, slots: count, ...child } = checked.data
  const logger = steadyLogger(child.logger ?? defaultLogger)
  const slots: ProcessSlot[] = []
  // Last in, first out: the slot used last is the warmest.
  const free: ProcessSlot[] = []
  const shares = new Shares({ total: count, reserve: 0 })
  const runs = new RunGroup()

  function newSlot(): ProcessSlot {
    const slot = new ProcessSlot({ ...child, logger })
    slots.push(slot)
    return slot
  }

  function inChild(request: HostRequest, run: RunOptions): Promise<WorkResult> {
    const inSlot = async () => {
      const slot = free.pop() ?? newSlot()
      try {
        return await slot.run(request, run)
      } finally {
        free.push(slot)
      }
    }
    return shares.use('', inSlot, { signal: run.signal })
  }

  return {
    run: (order, options) =>
      runs.run(options.signal, async (signal) => {
        const run = { ...options, signal }
        if (order.module === null) return await runInline(async () => resolve(order.workflow), order, run, logger)
        return await inChild({ type: 'run', order }, run)
      }),
    prepare: ({ module, settings }, { signal }) =>
      runs.run(signal, async (ending) => {
        if (module === null) return {}
        const request = { type: 'prepare' as const, module, settings }
        return (await inChild(request, { signal: ending, onProgress: () => {} })).details
      }),
    status: () => ({
      slots: count,
      busy: shares.held,
      restarts: slots.reduce((sum, { losses }) => sum + losses, 0),
    }),
    async close() {
      runs.close()
      await Promise.all(slots.map((slot) => slot.close()))
    },
  }
}
