import { StemworkError } from '../errors.js'
import { requirePrograms } from '../program/find-program.js'
import type { Logger } from '../ports/logger.js'
import type { Runner } from '../ports/runner.js'
import type { Workflow } from '../workflow/workflow.js'

/** Large networks take some seconds to load from a slow disk. */
const timeoutMs = 120_000
/** How long a failed check is cached, because health checks run every few seconds. */
const retryMs = 30_000

export interface ReadinessOptions {
  runner: Runner
  workflows: readonly Workflow[]
  logger: Logger
  /** A monotonic clock, in milliseconds. Default: `performance.now`. */
  clock?: () => number
}

/**
 * Checks which workflows can run in this process: a child has started, and each workflow has loaded its dependencies. A
 * workflow that lacks one is unavailable, and the others run.
 */
export class Readiness {
  readonly #options: Required<ReadinessOptions>
  #last: Promise<void> | undefined
  #failedAt: number | undefined
  #failures: ReadonlyMap<string, unknown> = new Map()

  constructor(options: ReadinessOptions) {
    this.#options = { clock: () => performance.now(), ...options }
  }

  /**
   * Resolves when any workflow can run. Checks once; later calls return the result. A failed check is repeated after
   * 30 s, or at once with `again`.
   *
   * @throws StemworkError with the remedy, if no workflow can run.
   */
  check({ again = false } = {}): Promise<void> {
    const { clock } = this.#options
    if (this.#failedAt !== undefined && (again || clock() - this.#failedAt >= retryMs)) this.forget()
    this.#last ??= this.#prepareAll().catch((error: unknown) => {
      this.#failedAt = clock()
      const isClosing = StemworkError.is(error) && error.code === 'SHUTTING_DOWN'
      if (!isClosing) this.#options.logger.error({ err: error }, 'Jobs cannot run in this process.')
      throw error
    })
    return this.#last
  }

  /** Makes the next call check again. */
  forget(): void {
    this.#last = undefined
    this.#failedAt = undefined
  }

  /** The workflows that the last check did not rule out. Also repeats a failed check once its cache time has passed. */
  runnable(): string[] {
    if (this.#failures.size > 0) void this.check().catch(() => {})
    return this.#options.workflows.map(({ id }) => id).filter((id) => !this.#failures.has(id))
  }

  /** @throws StemworkError `WORKFLOW_UNAVAILABLE` if the last check ruled the workflow out. */
  requireRunnable(id: string): void {
    this.runnable()
    if (!this.#failures.has(id)) return
    const message = `The workflow ${id} cannot run at present: ${unreadyText(this.#failures.get(id))}`
    throw new StemworkError('WORKFLOW_UNAVAILABLE', message, { retryable: true, details: { workflow: id } })
  }

  /** The workflows that the last check ruled out, with the reason for clients and operators. */
  unavailable(): ReadonlyMap<string, string> {
    return new Map([...this.#failures].map(([id, error]) => [id, unreadyText(error)]))
  }

  async #prepareAll(): Promise<void> {
    const { workflows, logger, clock } = this.#options
    const failures = new Map<string, unknown>()
    const known = new Map<Workflow, Promise<unknown>>()
    for (const workflow of workflows) {
      for (const part of workflow.composition?.steps.map((step) => step.workflow) ?? [workflow]) {
        // Several workflows may share a step.
        const failure = known.get(part) ?? this.#prepare(part).then(() => undefined, throughUnlessAll)
        known.set(part, failure)
        const error = await failure
        if (error !== undefined) failures.set(workflow.id, error)
      }
    }
    this.#failures = failures
    if (failures.size === 0) return
    if (failures.size === workflows.length) throw failures.values().next().value
    this.#failedAt = clock()
    for (const [workflow, error] of failures)
      logger.error({ workflow, err: error }, 'A workflow is unavailable in this process; the others run.')
  }

  async #prepare(workflow: Workflow): Promise<void> {
    const { runner, logger } = this.#options
    const { id, module } = workflow
    if (!module) return await requirePrograms(workflow)
    const details = await runner.prepare?.(
      { workflow: id, module: module.url, settings: module.settings ?? null },
      { signal: AbortSignal.timeout(timeoutMs) },
    )
    if (details && Object.keys(details).length > 0) logger.info({ workflow: id, ...details }, 'The workflow is ready.')
  }
}

/** Returns the failure of a single workflow, and throws an error that keeps all workflows from running. */
function throughUnlessAll(error: unknown): unknown {
  if (StemworkError.is(error) && (error.code === 'RUNNER_UNAVAILABLE' || error.code === 'SHUTTING_DOWN')) throw error
  return error
}

/** Describes a failed check for health checks, which may be public: without paths and stacks. */
export function unreadyText(error: unknown): string {
  return StemworkError.is(error) ? error.message : 'The log says why.'
}
