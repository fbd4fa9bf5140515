import { fileURLToPath } from 'node:url'
import { project } from '../../vitest.config.ts'

const { plugins, test } = project('mutation', { include: ['test/**/*.test.ts'] })
const runner = fileURLToPath(new URL('runner.mjs', import.meta.url))

/** The usual configuration, but with `runner.mjs` as the runner and a shorter limit for `expect.poll`. */
export default {
  plugins,
  test: { ...test, runner, pool: 'forks', maxWorkers: 1, reporters: 'dot', expect: { poll: { timeout: 1500 } } },
}
