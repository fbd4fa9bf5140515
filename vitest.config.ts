import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig, type Plugin } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { daily, longest, rules, shared, unit } from './test/projects.mjs'

const root = fileURLToPath(new URL('.', import.meta.url))
/** `scripts/mutation` makes others. */
const build = process.env.STEMWORK_BUILD ?? 'build'

/** `scripts/test.mjs` names a folder for it. */
const coverageFolder = process.env.STEMWORK_COVERAGE
const coverage = coverageFolder && {
  env: { NODE_V8_COVERAGE: coverageFolder },
  setupFiles: ['test/coverage.ts'],
}

/** What V8 does for programs that run for hours costs test processes a fifth of their time. */
const forShortRuns = [
  // As the children of the engine: the runtime of the networks is not optimized for a second of sound.
  '--wasm-tiering-budget=50000000',
  // A function is optimized after fifteen times as much work. Later versions of Node have a cheaper compiler in between.
  ...(process.versions.node.startsWith('20.') ? ['--interrupt-budget=1000000'] : []),
  // Garbage is collected later: a process of many files would mark the same hundreds of MiB again and again.
  '--max-semi-space-size=64',
  '--initial-old-space-size=1024',
]

/** In the order in which they run. */
const projects = ['whole', 'rules', 'shared', 'unit', 'daily']

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const index = longest.indexOf(moduleId.slice(root.length))
      // Those of a shared process side by side: it ends when the next file is of another project.
      return projects.indexOf(project.name) * 1000 + (index === -1 ? longest.length : index)
    }
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other))
  }
}

export default defineConfig(({ mode }) => {
  // Every process of Node reads it, which takes 60 ms. No test but the daily ones goes to the internet.
  if (mode !== 'daily') delete process.env.NODE_EXTRA_CA_CERTS
  // As `importNative` does, which is the one change of the environment that tests may leave.
  process.env.ORT_DISABLE_TELEMETRY = '1'
  return { test: testsOf(mode) }
})

function testsOf(mode: string) {
  return {
    globalSetup: 'test/setup.ts',
    projects:
      mode === 'daily'
        ? [project('daily', { include: daily })]
        : [
            // One process for many files: each leaves it as it was.
            project('unit', { include: unit, isolate: false, ...coverage }),
            project('shared', { include: shared, isolate: false }),
            project('rules', { include: rules }),
            project('whole', { include: ['test/**/*.test.ts'], exclude: [...unit, ...shared, ...rules, ...daily] }),
          ],
    pool: 'forks',
    // Many files wait for servers and children half of the time: four leave a fifth of two cores idle.
    maxWorkers: Math.max(5, availableParallelism()),
    sequence: { sequencer: LongestFirst },
  }
}

/** Tests that run in the same way. */
export function project(name: string, { exclude = [], setupFiles = [], ...options }: ProjectOptions) {
  return {
    plugins: [testTheBuild()],
    test: {
      name,
      ...options,
      execArgv: forShortRuns,
      setupFiles: ['test/equality.ts', ...(options.isolate === false ? ['test/shared-process.ts'] : []), ...setupFiles],
      exclude: [...configDefaults.exclude, ...exclude],
      // Real children, sockets and audio on two shared cores: generous, so that a slow machine is not a failing one.
      testTimeout: 60_000,
      hookTimeout: 60_000,
      expect: { poll: { timeout: 20_000 } },
      // The build is loaded by Node itself, as a host loads it.
      server: { deps: { external: [new RegExp(`/(${build}|dist)/`)] } },
    },
  }
}

interface ProjectOptions {
  include: string[]
  exclude?: string[]
  isolate?: boolean
  env?: Record<string, string>
  setupFiles?: string[]
}

/**
 * Tests import `src/...`, so that types and editors follow, and run `build/...`, as their children do: the files of
 * which `scripts/bundle.mjs` makes what is published. Commands, examples and the tests of the package run that.
 * `test/setup.ts` builds both. The console's sources are an exception: its build is a single script for browsers.
 */
function testTheBuild(): Plugin {
  return {
    name: 'test-the-build',
    enforce: 'pre',
    async resolveId(source, importer) {
      if (!importer || !source.startsWith('.')) return undefined
      const path = fileURLToPath(new URL(source, `file://${importer}`))
      if (!path.startsWith(`${root}src/`) || path.startsWith(`${root}src/console/`)) return undefined
      return { id: path.replace(`${root}src/`, `${root}${build}/`), external: true }
    },
  }
}
