// Whether hostile applications can slow down the others, however many they are: 50 applications, of which 1, 5, 10 and
// 25 storm every route and lane at once (event streams, slow origins, dead receivers, peaks, ZIPs, bulk deletes,
// unfinished uploads, large records, long lists, wrong keys), while 25 others submit small jobs, poll, list, upload and
// download. The service, the others and the hostile ones have a process each. For each number of hostile ones, the
// service starts anew; then phases take turns in which the others are alone, beside busy applications, and in the
// storm. Fails if an aim is missed: the p95 of the others at most 2 times idle, memory at most 1.5 times, and no job of
// theirs delayed by more than one turn of every other application, each as long as jobs ran in the storm.
//
// For comparison, as many harmless applications as there are hostile ones do what the others do without a pause, one
// thing at a time: what those cost the others is due to load, and only the rest to hostility.
//
// In the real world, hostile applications have machines of their own. Here their requests take CPU time that the
// service and its jobs need, so they have a session with a lower priority than both, and the report says how long the
// service's event loop waited for a CPU.
// If other programs use the CPUs, too, `--real-time` (Linux, as root) gives the service and the others priority over
// all of them; V8's own threads come after the main thread. A database on this machine needs a priority above both
// (`chrt --rr 3`), as it has processors of its own elsewhere. V8's heap is kept as `stemwork serve` keeps it. The disk
// is the service's own: a probe in another process times a synced write meanwhile; with TMPDIR on a RAM disk, the disk
// plays no part.
// Options: --store=postgres://... (default: SQLite), --hostile=1,5,10,25, --seconds=N (of each phase), --rounds=N,
// --real-time, --profile=FOLDER (CPU profile of the service). STEMWORK_BENCHMARK_LANES=stream,zip limits the storm to
// these.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { machine, option } from './shared/benchmark.mjs'

const applications = 50
const others = 25
const seconds = Number(option('seconds', '15'))
const rounds = Number(option('rounds', '2'))
const isRealTime = process.argv.includes('--real-time')
const profile = option('profile', '')
/** Work left by a phase has ended after this time. */
const settleMs = 4000
const numbers = option('hostile', '1,5,10,25').split(',').map(Number)
const storeUrl = option('store', '')
const aims = { ratio: 2, memory: 1.5 }
/**
 * Minimum duration of an application's turn on one of the 4 slots: its slowest job may fetch for 100 ms before it
 * releases the slot.
 */
const leastTurnMs = 100
const slots = 4
/** Shorter times are noise of the machine. */
const leastMs = 10

await printMachine()
let isMet = true
for (const count of numbers) isMet = (await measure(count)) && isMet
process.exitCode = isMet ? 0 : 1

async function measure(count) {
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
  const database = await openDatabase()
  const children = []
  const start = async (name, ...args) => {
    const isOutside = name === 'hostile' || args.includes('busy')
    const child = fork(new URL(`./neighbours/${name}.mjs`, import.meta.url), args.map(String), launch(name, isOutside))
    children.push(child)
    const [first] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [])])
    if (first === undefined) throw new Error(`The process ${name} ended before it was ready.`)
    return { child, first }
  }
  try {
    const { child: service, first } = await start('service', folder, database.url, applications)
    const { base, keys } = first
    const demoting = isRealTime && setInterval(demoteChildren, 200, service.pid, new Set())
    service.once('exit', () => clearInterval(demoting))
    const { child: wellBehaved } = await start('others', base, folder, 'steady', ...keys.slice(applications - others))
    const { child: busy } = await start('others', base, folder, 'busy', ...keys.slice(0, count))
    const { child: hostile } = await start('hostile', base, ...keys.slice(0, count))
    let counts = {}
    hostile.on('message', (message) => (counts = message))
    // Warms up the compilers.
    await phase(wellBehaved, service, 5)
    const [idle, beside, storm] = [[], [], []]
    for (let round = 0; round < rounds; round++) {
      idle.push(await phase(wellBehaved, service, seconds))
      busy.send({ kind: 'start' })
      beside.push(await phase(wellBehaved, service, seconds))
      busy.send({ kind: 'stop' })
      await once(busy, 'message')
      hostile.send('storm')
      await delay(settleMs)
      storm.push(await phase(wellBehaved, service, seconds))
      hostile.send('rest')
      await delay(settleMs)
    }
    if (profile) await told(service, 'exit')
    return report(count, { idle: together(idle), busy: together(beside), storm: together(storm), counts })
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
    await database.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Options for starting a process. */
function launch(name, isOutside) {
  const profiling = name === 'service' && profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : []
  if (!isRealTime) return { execArgv: profiling, detached: isOutside }
  const env = { ...process.env, STEMWORK_BENCHMARK_REAL_TIME: 'true' }
  // At any normal priority, such a process runs after the service.
  if (isOutside) return { env, detached: true }
  return { execPath: 'chrt', execArgv: ['--rr', '2', process.execPath, ...profiling], env }
}

/**
 * Jobs inherit the service's real-time priority, which is meant for it alone. The service does not lower it itself:
 * its event loop would wait for each start of `chrt`.
 */
function demoteChildren(pid, demoted) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  for (const child of children.filter((child) => child && !demoted.has(child))) {
    demoted.add(child)
    spawn('chrt', ['--other', '--pid', '0', child], { stdio: 'ignore' })
  }
}

async function phase(wellBehaved, service, forSeconds) {
  const before = await told(service, 'usage')
  wellBehaved.send({ kind: 'start' })
  await delay(forSeconds * 1000)
  const usage = await told(service, 'usage')
  wellBehaved.send({ kind: 'stop' })
  const [samples] = await once(wellBehaved, 'message')
  const share = (name) => (usage[name] - before[name]) / forSeconds / 10
  return { samples, usage: { ...usage, cpuShare: share('cpuMs'), waitShare: share('waitedMs') } }
}

async function told(service, what) {
  service.send(what)
  const [usage] = await once(service, what === 'exit' ? 'exit' : 'message')
  return usage
}

/** Merges the phases of one kind. */
function together(phases) {
  const samples = {}
  for (const phase of phases)
    for (const [name, values] of Object.entries(phase.samples)) (samples[name] ??= []).push(...values)
  const most = (name) => Math.max(...phases.map(({ usage }) => usage[name]))
  const names = ['cpuShare', 'waitShare', 'loopMs']
  const usage = Object.fromEntries(names.map((name) => [name, most(name)]))
  const peak = phases.map(({ usage }) => usage.peak).reduce((a, b) => (a.rss > b.rss ? a : b))
  // Idle memory is that of the first phase: in later ones, memory from a storm remains.
  return { samples, usage: { ...usage, peak, firstPeak: phases[0].usage.peak } }
}

function report(count, { idle, busy, storm, counts }) {
  console.log(`\n${count} hostile of ${applications} applications\n`)
  const rows = []
  for (const name of ['submit', 'status', 'list', 'upload', 'result']) {
    const [was, beside, is] = [idle, busy, storm].map(({ samples }) => percentile(samples[name]))
    rows.push([name, was, beside, is, is / Math.max(was, leastMs) <= aims.ratio, `${(is / was).toFixed(1)} x`])
  }
  const [was, beside, is] = [idle, busy, storm].map(({ samples }) => percentile(samples.jobStart))
  // As long as jobs of the same phase ran: with little CPU time, all turns take longer.
  const ranMs = [idle, busy, storm].map(({ samples }) => mean(samples.jobRun))
  const runs = `jobs ran for ${ranMs.map((ms) => ms.toFixed(0)).join(', ')} ms on average`
  const turnMs = Math.max(leastTurnMs, ranMs.at(-1))
  const fairMs = aims.ratio * Math.max(was, leastMs) + ((count + others) * turnMs) / slots
  rows.push([
    'submit to start of the job',
    was,
    beside,
    is,
    is <= fairMs,
    `fair share: ${fairMs.toFixed(0)} ms, ${runs}`,
  ])
  for (const [name, before, between, after, isFine, text] of rows) {
    const besides = `${text}, beside busy neighbours ${between.toFixed(1)} ms`
    print(`  ${name}, p95`, `${before.toFixed(1)} -> ${after.toFixed(1)} ms`, isFine, besides)
  }
  const growth = storm.usage.peak.rss / idle.usage.firstPeak.rss
  print(
    '  peak memory',
    `${mib(idle.usage.firstPeak.rss)} -> ${mib(storm.usage.peak.rss)} MiB`,
    growth <= aims.memory,
    `${growth.toFixed(2)} x, beside busy neighbours ${mib(busy.usage.peak.rss)} MiB`,
  )
  const failures = [idle, busy, storm].flatMap(({ samples }) => samples.failures)
  print('  requests of the others that failed', String(failures.length), failures.length === 0, failures[0] ?? '')
  const load = ({ samples, usage }) =>
    `processor ${usage.cpuShare.toFixed(0)} %, waited for one ${usage.waitShare.toFixed(0)} %, event loop delay p99 ` +
    `${usage.loopMs.toFixed(0)} ms, synced write of another process p95 ${percentile(samples.disk).toFixed(0)} ms, ` +
    memory(usage.peak)
  console.log(`  service, idle: ${load(idle)}`)
  console.log(`  service, beside busy neighbours: ${load(busy)}`)
  console.log(`  service, storm: ${load(storm)}`)
  const said = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))
  if (said.length === 0) console.log('  The hostile applications got no processor time, so this says nothing.')
  console.log(`  answers to the hostile applications: ${said.map(([what, times]) => `${what} x ${times}`).join(', ')}`)
  return rows.every(([, , , , isFine]) => isFine) && growth <= aims.memory && failures.length === 0 && said.length > 0
}

/** Composition of the memory at its peak. */
function memory({ heapUsed, heapTotal, external, arrayBuffers, rss }) {
  const parts = { heapUsed, heapFree: heapTotal - heapUsed, arrayBuffers, external: external - arrayBuffers }
  const rest = rss - heapTotal - external
  return `MiB: ${Object.entries({ ...parts, rest })
    .map(([name, bytes]) => `${name} ${mib(bytes)}`)
    .join(', ')}`
}

function print(name, figures, isFine, text) {
  console.log(`${name.padEnd(40)} ${figures.padEnd(24)} ${isFine ? 'met' : 'MISSED'}  ${text}`)
}

/** Creates a database on a Postgres server; SQLite needs none. */
async function openDatabase() {
  if (!storeUrl) return { url: '', async close() {} }
  const { Client } = await import('pg')
  const server = new Client({ connectionString: storeUrl })
  await server.connect()
  const name = `stemwork_benchmark_${process.pid}`
  await server.query(`CREATE DATABASE ${name}`)
  const own = new URL(storeUrl)
  own.pathname = `/${name}`
  return {
    url: own.href,
    async close() {
      await server.query(`DROP DATABASE ${name} WITH (FORCE)`)
      await server.end()
    },
  }
}

async function printMachine() {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
  console.log(
    `${machine()}; stemwork ${version}, Node ${process.version}, ` +
      `${storeUrl ? 'Postgres' : 'SQLite'}, files in ${tmpdir()}` +
      `${isRealTime ? ', real-time' : ''}; ${rounds} times ${seconds} s idle and ${seconds} s of storm`,
  )
}

function percentile(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(0.95 * sorted.length) - 1)] ?? NaN
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function mib(bytes) {
  return Math.round(bytes / 1024 ** 2)
}
