import { spawn } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Programs that judge the sources. */
const programs = {
  'type check': ['node_modules/typescript/bin/tsc'],
  'type check of the pages': ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.console.json'],
  'format check': ['node_modules/prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.'],
  lint: ['node_modules/oxlint/bin/oxlint', '--type-aware'],
}

/** Runs them at the same time. Returns those that failed, with what they printed. */
export async function failedChecks() {
  const checks = await Promise.all(Object.entries(programs).map(([name, args]) => check(name, args)))
  return checks.filter(({ status }) => status !== 0)
}

async function check(name, [program, ...args]) {
  const child = spawn(process.execPath, [join(root, program), ...args], { cwd: root })
  let output = ''
  child.stdout.on('data', (data) => (output += data))
  child.stderr.on('data', (data) => (output += data))
  const status = await new Promise((resolve) => child.once('close', resolve))
  return { name, output, status }
}
