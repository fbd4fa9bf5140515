import { StemworkError } from '../errors.js'
import type { Logger } from '../ports/logger.js'
import type { Runner } from '../ports/runner.js'
import type { Workflow } from '../workflow/workflow.js'

/** Large networks take some seconds to load from a slow disk. */
const timeoutMs = 120_000
/** How long a failed check is cached: health checks come every few seconds. */
const retryMs = 30_000

export interface ReadinessOptions {
  runner: Runner
  workflows: readonly Workflow[]
  logger: Logger
  /** Milliseconds that only rise. Default: `performance.now`. */
  clock?: () => number
}

/** Whether jobs can run in this process: a child has started once, and each workflow has loaded what it needs. */
export class Readiness {
  readonly #options: Required<ReadinessOptions>
  #last: Promise<void> | undefined
  #failedAt: number | undefined

  constructor(options: ReadinessOptions) {
    this.#options = { clock: () => performance.now(), ...options }
  }

  /**
   * Checked once; later calls return the result. A failed check is repeated after 30 s, or at once with `again`.
   *
   * @throws StemworkError with the remedy.
   */
  check({ again = false } = {}): Promise<void> {
    const { clock } = this.#options
    if (this.#failedAt !== undefined && (again || clock() - this.#failedAt >= retryMs)) this.forget()
    this.#last ??= this.#prepare().catch((error: unknown) => {
      this.#failedAt = clock()
      const isClosing = StemworkError.is(error) && error.code === 'SHUTTING_DOWN'
      if (!isClosing) this.#options.logger.error({ err: error }, 'Jobs cannot run in this process.')
      throw error
    })
    return this.#last
  }

  /** The next call checks again. */
  forget(): void {
    this.#last = undefined
    this.#failedAt = undefined
  }

  async #prepare(): Promise<void> {
    const { runner, workflows, logger } = this.#options
    const all = workflows.flatMap((one) => one.composition?.steps.map(({ workflow }) => workflow) ?? [one])
    for (const { id, module } of all) {
      if (!module) continue
      const signal = AbortSignal.timeout(timeoutMs)
      const details = await runner.prepare?.(
        { workflow: id, module: module.url, settings: module.settings },
        { signal },
      )
      if (details && Object.keys(details).length > 0)
        logger.info({ workflow: id, ...details }, 'The workflow is ready.')
    }
  }
}

/** A failed check as text for health checks, which may be public: without paths and stacks. */
export function unreadyText(error: unknown): string {
  return `Jobs cannot run in this process. ${StemworkError.is(error) ? error.message : 'The log says why.'}`
}
