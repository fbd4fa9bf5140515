// Runs the tests (arguments are passed to vitest) in parallel with the checks of types, format and lint, and the
// measurements named in STEMWORK_MEASURE, separated by commas; then the measurements that need the machine to
// themselves. The last line is `N passed, N failed, N skipped`.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { daily } from '../test/projects.mjs'
import { measurements, runAlone, runChecks } from './checks.mjs'
import { coverageOf } from './coverage.mjs'
import { printCounts, runTests } from './run-tests.mjs'

const args = process.argv.slice(2)
const coverage = (process.env.STEMWORK_COVERAGE = mkdtempSync(join(tmpdir(), 'stemwork-coverage-')))
const measured = (process.env.STEMWORK_MEASURE ?? '').split(',')
const [checksBeside, counts] = await Promise.all([runChecks(measured), runTests(args)])
const checks = [...checksBeside, ...(await runAlone(measured))]
const failures = checks.filter(({ status }) => status !== 0)
for (const { name, output } of checks) if (name in measurements) console.log(`\nThe ${name}:\n${output}`)
for (const { name, output } of failures) console.log(`\nThe ${name} failed:\n${output}`)
if (args.length === 0) console.log(`\nNot run, but by \`npm run test:daily\`:\n  ${daily.join('\n  ')}`)
if (readdirSync(coverage).length > 0) console.log(`\nCoverage by the unit tests alone: ${coverageOf(coverage)}`)
rmSync(coverage, { recursive: true })
printCounts({ ...counts, failed: counts.failed + failures.length })
