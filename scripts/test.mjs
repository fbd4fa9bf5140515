// Runs the tests and closes with the line `N passed, N failed, N skipped`; every skipped test is listed with its
// reason.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-test-'))
const report = join(folder, 'report.json')

const checks = await Promise.all([
  check('type check', 'node_modules/typescript/bin/tsc'),
  check('type check of the pages', 'node_modules/typescript/bin/tsc', '-p', 'tsconfig.console.json'),
  check('format check', 'node_modules/prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.'),
  check('lint', 'node_modules/oxlint/bin/oxlint', '--type-aware'),
])
const failedChecks = checks.filter(({ status }) => status !== 0)
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
const failed = failedTests + strayErrors + failedChecks.length

if (skipped.length > 0) {
  console.log('\nSkipped:')
  for (const { file, fullName } of skipped) console.log(`  ${file}: ${fullName}`)
}
for (const { name, message } of brokenFiles) console.log(`\nFailed to run: ${relative(root, name)}\n${message}`)
if (strayErrors > 0) console.log('\nThe run failed outside the tests; see above.')
for (const { name } of failedChecks) console.log(`\nThe ${name} failed; see above.`)
console.log(`\n${passed} passed, ${failed} failed, ${skipped.length} skipped`)
process.exitCode = failed > 0 || passed === 0 || vitest.status !== 0 ? 1 : 0

/** Runs a program that judges the sources; what it prints is shown as one block. */
async function check(name, program, ...args) {
  const child = spawn(process.execPath, [join(root, program), ...args], { cwd: root })
  let output = ''
  child.stdout.on('data', (data) => (output += data))
  child.stderr.on('data', (data) => (output += data))
  const status = await new Promise((resolve) => child.once('close', resolve))
  if (status !== 0) console.log(`\n${name}:\n${output}`)
  return { name, status }
}

function readReport() {
  try {
    return JSON.parse(readFileSync(report, 'utf8'))
  } catch {
    console.log('\nThe test runner ended without a report.\n\n0 passed, 1 failed, 0 skipped')
    process.exit(1)
  }
}
