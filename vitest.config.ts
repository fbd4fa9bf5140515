import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig, type Plugin } from 'vitest/config'

const root = fileURLToPath(new URL('.', import.meta.url))
/** `scripts/mutation` makes others. */
const build = process.env.STEMWORK_BUILD ?? 'dist'

export default defineConfig(({ mode }) => ({
  plugins: [testTheBuild()],
  test: {
    include: ['test/**/*.test.ts'],
    // These need a registry of packages and minutes: `npm run test:platforms`.
    exclude: [...configDefaults.exclude, ...(mode === 'platforms' ? [] : ['test/platforms/**'])],
    globalSetup: 'test/setup.ts',
    // Real children, sockets and audio on two shared cores: generous, so that a slow machine is not a failing one.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    pool: 'forks',
    maxWorkers: 2,
    // The build is loaded by Node itself, as a host loads it.
    server: { deps: { external: [new RegExp(`/${build}/`)] } },
  },
}))

/**
 * Tests import `src/...`, so that types and editors follow, and run `dist/...`: what is tested is what is published, and a test's
 * host and the children that it forks are always of the same build. `test/setup.ts` builds it. The console's sources are an
 * exception: its build is a single script for browsers.
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
