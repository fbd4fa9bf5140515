// The tests that take minutes and need the network: other platforms and programs, real weights (98 MB, for tests only,
// as their terms allow), damaged files, and requests generated from the OpenAPI document. Arguments are passed to
// vitest; if there are any, only the tests run. The last line is `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { printCounts, runTests } from './run-tests.mjs'

const root = join(import.meta.dirname, '..')
const args = process.argv.slice(2)
let failed = 0

if (args.length === 0) {
  // The files differ every day: the seed is the date, and is printed.
  if (!succeeds('benchmarks/fuzz.mjs')) failed++
  if (!succeeds('node_modules/vitest/vitest.mjs', 'run', 'test/clients/schemathesis.test.ts')) failed++
  if (!onWebAssembly()) failed++
  if (!succeeds('dist/cli/main.js', 'models', 'pull', 'htdemucs', '--accept-licence'))
    console.log('htdemucs could not be pulled (see above): its tests will be skipped.')
}
const counts = await runTests(['--mode=daily', ...args])
printCounts({ ...counts, failed: counts.failed + failed })

/** Repeats the tests that separate songs on WebAssembly, which is not used where onnxruntime-node is installed. */
function onWebAssembly() {
  process.env.STEMWORK_RUNTIME = 'wasm'
  const files = [
    'test/service',
    'test/cli/separate',
    'test/cli/serve',
    'test/separation/resume',
    'test/separation/embedded',
  ]
  const succeeded = succeeds('scripts/demo.mjs') && succeeds('node_modules/vitest/vitest.mjs', 'run', ...files)
  delete process.env.STEMWORK_RUNTIME
  return succeeded
}

function succeeds(program, ...rest) {
  const env = {
    STEMWORK_FUZZ_SECONDS: '120',
    STEMWORK_SCHEMATHESIS_EXAMPLES: '50',
    STEMWORK_SCHEMATHESIS_SEED: new Date().toISOString().slice(0, 10).replaceAll('-', ''),
    ...process.env,
  }
  return spawnSync(process.execPath, [join(root, program), ...rest], { cwd: root, stdio: 'inherit', env }).status === 0
}
