// Clients submit jobs to a service of several processes, on its own servers, while processes are killed and stopped,
// connections cut, stalled and delayed, Redis is flushed, Postgres restarted, and the blob store goes down. Counts what
// became of the jobs: all have to end, and every column from "twice" on has to be 0. Prints one line per run, and below
// it a description of any problem.
//
// Options: --seeds=1,2 --queue=bullmq,postgres --seconds=100 (of faults) --jobs=200 --outage=60 (seconds of S3's
// outage) --beside=next,none (the version of every second node: `next` is this build with an additional field and
// column; others are git revisions) --workers=4 --api=2 --verbose
import { cpus, availableParallelism, loadavg } from 'node:os'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'tsup'
import { option } from './shared/benchmark.mjs'

const root = join(import.meta.dirname, '..')
const seeds = list('seeds', '1').map(Number)
const queues = list('queue', 'bullmq,postgres')
const versions = list('beside', 'none,next')
const seconds = Number(option('seconds', '100'))
const options = {
  root,
  seconds,
  jobs: Number(option('jobs', '200')),
  workers: Number(option('workers', '4')),
  apiNodes: Number(option('api', '2')),
  outageSeconds: Number(option('outage', '60')),
  settleSeconds: 240,
  stopsGently: true,
  log: process.argv.includes('--verbose') ? (line) => console.error(line) : undefined,
}
const often = Math.max(1, Math.round(seconds / 12))
const faults = {
  'worker killed': often,
  'worker stopped': Math.ceil(often / 2),
  'API node killed': Math.ceil(often / 3),
  'API node stopped': Math.ceil(often / 3),
  'connections cut': often,
  'connections silenced': Math.ceil(often / 2),
  'connections delayed': Math.ceil(often / 2),
  'Postgres restarted': Math.ceil(often / 4),
  'S3 away': 1,
}

const { crashRun, remove } = await compiled('test/crash/crash-run.ts')
try {
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}, Node ` +
      `${process.version}; ${options.workers} workers, ${options.apiNodes} API nodes, ${seconds} s of faults, S3 ` +
      `down for ${options.outageSeconds} s\n`,
  )
  const header = [
    'queue',
    'beside',
    'seed',
    'submitted',
    'terminal',
    'caused',
    'shared',
    'twice',
    'failed',
    'revived',
    'orphans',
    'wrong',
    'fields',
    'stuck',
    'exits',
    'hang',
    'faults',
    'stalls',
    's',
  ]
  console.log(header.map((name) => name.padStart(9)).join(' '))
  for (const seed of seeds) {
    for (const queue of queues) {
      for (const beside of versions) {
        const report = await crashRun({
          ...options,
          seed,
          queue,
          beside: beside === 'none' ? undefined : beside,
          faults: queue === 'bullmq' ? { ...faults, 'Redis flushed': Math.ceil(often / 3) } : faults,
        })
        print(seed, queue, beside, report)
      }
    }
  }
} finally {
  await remove()
}

function print(seed, queue, beside, report) {
  const zeros = [
    report.acceptedTwice,
    report.failedWithoutCause,
    report.revived,
    report.orphanBlobs,
    report.wrongResults,
    report.fieldsLost,
    report.stuck,
    report.unexpectedExits.length,
    report.notStopped,
  ]
  const total = Object.values(report.faults).reduce((sum, number) => sum + number, 0)
  const row = [
    queue,
    beside,
    seed,
    report.submitted,
    report.terminal,
    report.failedWithCause,
    report.sharedByVersions,
    ...zeros,
    total,
    report.stalls,
    report.seconds,
  ]
  console.log(row.map((value) => String(value).padStart(9)).join(' '))
  const wrong = Object.entries(report.wrongAnswers).map(([answer, times]) => `${times} x ${answer}`)
  for (const line of [...report.problems, ...report.unexpectedExits, ...wrong]) console.log(`  ${line}`)
  const isGood = report.terminal === report.submitted && zeros.every((value) => value === 0) && wrong.length === 0
  if (!isGood) process.exitCode = 1
}

/** Compiles the run, which is written in TypeScript like the tests whose servers it uses. */
async function compiled(entry) {
  const outDir = await mkdtemp(join(root, 'node_modules/.stemwork-crash-'))
  const remove = () => rm(outDir, { recursive: true, force: true })
  try {
    const useBuild = {
      name: 'use-build',
      setup({ onResolve }) {
        onResolve({ filter: /\/src\// }, ({ path }) => ({
          path: `${root}/build/${path.replace(/^(\.\.\/)+src\//, '')}`,
          external: true,
        }))
      },
    }
    await build({
      entry: [join(root, entry)],
      outDir,
      outExtension: () => ({ js: '.mjs' }),
      config: false,
      format: 'esm',
      target: 'node20',
      skipNodeModulesBundle: true,
      esbuildPlugins: [useBuild],
      silent: true,
    })
    return { ...(await import(join(outDir, 'crash-run.mjs'))), remove }
  } catch (error) {
    await remove()
    throw error
  }
}

function list(name, fallback) {
  return option(name, fallback).split(',')
}
