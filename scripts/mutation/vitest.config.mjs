import { fileURLToPath } from 'node:url'
import tests from '../../vitest.config.ts'

/** The tests as always, but run by `runner.mjs`; what waits for something has to see it soon. */
export default (environment) => {
  const { test, ...config } = tests(environment)
  const runner = fileURLToPath(new URL('runner.mjs', import.meta.url))
  const changes = { runner, isolate: true, expect: { poll: { timeout: 1500 } } }
  return {
    ...config,
    test: {
      ...test,
      globalSetup: [],
      maxWorkers: 1,
      reporters: 'dot',
      projects: test.projects.map((project) => ({ ...project, test: { ...project.test, ...changes } })),
    },
  }
}
