// Runs the tests and closes with the line `N passed, N failed, N skipped`; every skipped test is listed with its reason.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-test-'))
const report = join(folder, 'report.json')

const typeCheck = spawnSync(process.execPath, [join(root, 'scripts/typecheck.mjs')], { stdio: 'inherit' })
const typesAreRight = typeCheck.status === 0
const vitest = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    `--reporter=${join(root, 'scripts/second-attempts.mjs')}`,
    ...process.argv.slice(2),
  ],
  { cwd: root, stdio: 'inherit' },
)
const results = readReport()
rmSync(folder, { recursive: true, force: true })

const tests = results.testResults.flatMap((file) =>
  file.assertionResults.map((test) => ({ ...test, file: relative(root, file.name) })),
)
const count = (...statuses) => tests.filter((test) => statuses.includes(test.status)).length
const skipped = tests.filter((test) => ['pending', 'skipped', 'todo', 'disabled'].includes(test.status))
// A file that does not load has no tests of its own to fail.
const brokenFiles = results.testResults.filter(
  (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
)
const passed = count('passed')
const failedTests = count('failed') + brokenFiles.length
// An error outside any test fails the run without failing a test.
const strayErrors = vitest.status !== 0 && failedTests === 0 ? 1 : 0
const failed = failedTests + strayErrors + (typesAreRight ? 0 : 1)

if (skipped.length > 0) {
  console.log('\nSkipped:')
  for (const { file, fullName } of skipped) console.log(`  ${file}: ${fullName}`)
}
for (const { name, message } of brokenFiles) console.log(`\nFailed to run: ${relative(root, name)}\n${message}`)
if (strayErrors > 0) console.log('\nThe run failed outside the tests; see above.')
if (!typesAreRight) console.log('\nThe type check failed; see above.')
console.log(`\n${passed} passed, ${failed} failed, ${skipped.length} skipped`)
process.exitCode = failed > 0 || passed === 0 || vitest.status !== 0 ? 1 : 0

function readReport() {
  try {
    return JSON.parse(readFileSync(report, 'utf8'))
  } catch {
    console.log('\nThe test runner ended without a report.\n\n0 passed, 1 failed, 0 skipped')
    process.exit(1)
  }
}
