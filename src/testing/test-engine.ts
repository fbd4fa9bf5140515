import type { JobEngine } from '../core/engine/engine.js'
import type { EngineSettings } from '../core/engine/options.js'
import { inlineRunner } from '../core/engine/runner/inline-runner.js'
import type { Workflow } from '../core/engine/workflow/workflow.js'
import { createEngine } from '../create-engine.js'

export type TestEngineOptions<Offered extends Workflow = Workflow> = EngineSettings & { workflows: readonly Offered[] }

/**
 * An engine for a host's test suite: jobs, files and queue in memory; stages in the test's own process, where debuggers
 * and mocks reach them; and retries without a delay. It starts nothing: call `start()` before and `close()` after.
 *
 * @example
 * const engine = createTestEngine({ workflows: [thumbnails] })
 * @throws StemworkError `INVALID_OPTIONS`.
 */
export function createTestEngine<Offered extends Workflow>({
  workflows,
  ...settings
}: TestEngineOptions<Offered>): JobEngine<Offered> {
  const engine: JobEngine<Offered> = createEngine({
    ...settings,
    workflows,
    runner: inlineRunner({ resolve: (id) => engine.workflows.require(id), logger: settings.logger }),
    dispatch: { retryDelayMs: 0, ...settings.dispatch },
  })
  return engine
}
