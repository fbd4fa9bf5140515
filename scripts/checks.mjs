import { spawn } from 'node:child_process'
import { setPriority } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

// TypeScript 7 takes a quarter of the time of 5.9. Tools that read declarations (`api-report.mjs`, the type tests) keep
// 5.9, which has the compiler API that 7 lacks and is installed at most hosts. One thread: several threads check much
// of the program more than once, 16 s of CPU time instead of 6.
const tsc = ['node_modules/typescript-7/bin/tsc', '--singleThreaded']

/** Programs that check the sources. */
const programs = {
  'type check': tsc,
  'type check of the pages': [...tsc, '-p', 'tsconfig.console.json'],
  'type check for browsers': [...tsc, '-p', 'tsconfig.browser.json'],
  'format check': ['node_modules/oxfmt/bin/oxfmt', '--check'],
  lint: ['node_modules/oxlint/bin/oxlint', '--type-aware', '--threads=1'],
}

/** The checkers written in Go are short-lived: no garbage collection, and one thread. */
const env = { ...process.env, GOGC: 'off', GOMAXPROCS: '1' }

/** Programs that check the build, for `.ci/run`. */
export const measurements = {
  figures: ['scripts/figures.mjs'],
  'damaged files': ['benchmarks/fuzz.mjs'],
}

/** Measurements of CPU times, which are up to a fifth longer while tests use the same caches. */
const alone = ['figures']

/** Runs the checks and the named measurements in parallel. Returns the name, exit status and output of each. */
export async function runChecks(measured = []) {
  const chosen = Object.entries(measurements).filter(([name]) => measured.includes(name) && !alone.includes(name))
  return await Promise.all([...Object.entries(programs), ...chosen].map(([name, args]) => check(name, args)))
}

/** Runs those named measurements that need the machine to themselves. */
export async function runAlone(measured = []) {
  const results = []
  for (const name of alone) if (measured.includes(name)) results.push(await check(name, measurements[name]))
  return results
}

async function check(name, [program, ...args]) {
  const child = spawn(process.execPath, [join(root, program), ...args], { cwd: root, env })
  // Checks use the CPU time that the tests leave while waiting for servers and child processes.
  if (child.pid !== undefined) setPriority(child.pid, 10)
  let output = ''
  child.stdout.on('data', (data) => (output += data))
  child.stderr.on('data', (data) => (output += data))
  const status = await new Promise((resolve) => child.once('close', resolve))
  return { name, output, status }
}
