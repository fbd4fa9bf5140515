import type { JobEngine } from '../../core/engine/engine.js'
import { storedLimits } from '../../core/engine/limits/limits.js'
import type { Application } from '../../core/engine/ports/application-store.js'
import { createEngine } from '../../create-engine.js'
import { type CommandInput, type Terminal, UsageError } from '../command.js'
import type { DeploymentUrls } from './deployment.js'
import { requireData, withStore } from './service-storage.js'
import { stderrLogger } from '../terminal/stderr-logger.js'

/** Runs `use` with an engine on the store of a service, with the service's limits and without workflows. */
export async function withEngine(
  urls: DeploymentUrls,
  { stderr }: Terminal,
  use: (engine: JobEngine<never>) => Promise<number>,
): Promise<number> {
  requireData(urls)
  const logger = stderrLogger(stderr)
  return await withStore(urls, logger, async ({ parts }) => {
    const limits = await storedLimits(parts.jobs.documents)
    const engine = createEngine({ ...parts, ...limits, workflows: [], logger })
    try {
      return await use(engine)
    } finally {
      await engine.close({ timeoutMs: 0 })
    }
  })
}

/** The application that --app names. @throws UsageError for a name that no application has */
export function namedApplication(applications: readonly Application[], input: CommandInput): Application | undefined {
  const name = input.text('app')
  const named = applications.find((one) => one.name === name)
  if (name !== undefined && !named)
    throw new UsageError(`There is no application ${name}. Create one with: stemwork keys create`)
  return named
}
