import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const root = join(import.meta.dirname, '..')

/**
 * Runs vitest, passes on its output, and lists every skipped test with its reason. Returns the counts; `failed`
 * includes files that do not load and errors outside any test.
 */
export async function runTests(args) {
  const folder = mkdtempSync(join(tmpdir(), 'stemwork-test-'))
  const report = join(folder, 'report.json')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const vitest = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...reporters, ...args], {
    cwd: root,
    stdio: 'inherit',
  })
  const status = await new Promise((resolve) => vitest.once('close', resolve))
  const files = readReport(report)
  rmSync(folder, { recursive: true, force: true })
  if (files === undefined) {
    console.log('\nThe test runner ended without a report.')
    return { passed: 0, failed: 1, skipped: 0 }
  }
  return countsOf(files, status)
}

function countsOf(files, status) {
  const tests = files.flatMap((file) => file.assertionResults.map((test) => ({ ...test, file: file.name })))
  const skipped = tests.filter((test) => ['pending', 'skipped', 'todo', 'disabled'].includes(test.status))
  if (skipped.length > 0) console.log('\nSkipped:')
  for (const { file, fullName } of skipped) console.log(`  ${relative(root, file)}: ${fullName}`)

  // A file that does not load has no test that could fail.
  const broken = files.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  )
  for (const { name, message } of broken) console.log(`\nFailed to run: ${relative(root, name)}\n${message}`)

  const passed = tests.filter((test) => test.status === 'passed').length
  const failed = tests.filter((test) => test.status === 'failed').length + broken.length
  // An error outside any test, or a run without tests, fails the run without failing a test.
  if (failed > 0 || (status === 0 && passed > 0)) return { passed, failed, skipped: skipped.length }
  console.log('\nThe run failed outside the tests; see above.')
  return { passed, failed: 1, skipped: skipped.length }
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).testResults
  } catch {
    return undefined
  }
}

/** The last line of a run. */
export function printCounts({ passed, failed, skipped }) {
  console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`)
  process.exitCode = failed > 0 ? 1 : 0
}
