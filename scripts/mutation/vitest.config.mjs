import { fileURLToPath } from 'node:url'
import { project } from '../../vitest.config.ts'

const { plugins, test } = project('mutation', { include: ['test/**/*.test.ts'] })
const runner = fileURLToPath(new URL('runner.mjs', import.meta.url))

/** The tests as always, but run by `runner.mjs`; what waits for something has to see it soon. */
export default {
  plugins,
  test: { ...test, runner, pool: 'forks', maxWorkers: 1, reporters: 'dot', expect: { poll: { timeout: 1500 } } },
}
