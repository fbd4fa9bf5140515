// Whether hostile applications can slow the others down, however many they are: 50 applications, of which 1, 5, 10 and
// 25 storm on every route and lane at once (event streams, slow origins, dead receivers, peaks, ZIPs, bulk deletes,
// uploads begun, large records, long lists, wrong keys), while 25 others submit small jobs, poll, list, upload and
// download. The service, the others and the hostile ones have a process each, and the hostile one the lowest priority,
// so that it takes no processor time from the others but by what it makes the service do. For each number the service
// begins anew: first the others are alone, then the storm comes. Fails if an aim is missed: the p95 of the others at
// most 2 times idle, memory at most 1.5 times, no job of theirs late by more than the turns of the others.
// Options: --store=postgres://... (default: SQLite), --hostile=1,5,10,25, --seconds=N (idle, and of the storm)
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const applications = 50
const others = 25
const seconds = Number(option('seconds', '30'))
const numbers = option('hostile', '1,5,10,25').split(',').map(Number)
const storeUrl = option('store', '')
const aims = { ratio: 2, memory: 1.5 }
/** A turn of an application on one of the 4 slots: its slowest job may fetch for 100 ms before it gives up the slot. */
const turnMs = 100
const slots = 4
/** Below this, what is measured is the machine. */
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
    const child = fork(new URL(`./neighbours/${name}.mjs`, import.meta.url), args.map(String))
    children.push(child)
    const [first] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [])])
    if (first === undefined) throw new Error(`The process ${name} ended before it was ready.`)
    return { child, first }
  }
  try {
    const { child: service, first } = await start('service', folder, database.url, applications)
    const { base, keys } = first
    const { child: wellBehaved } = await start('others', base, ...keys.slice(applications - others))
    const { child: hostile } = await start('hostile', base, ...keys.slice(0, count))
    // Compilers are warm afterwards.
    await phase(wellBehaved, service, 5)
    const idle = await phase(wellBehaved, service, seconds)
    let counts = {}
    hostile.on('message', (message) => (counts = message))
    hostile.send(count)
    await delay(2000)
    const storm = await phase(wellBehaved, service, seconds)
    return report(count, { idle, storm, counts })
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
    await database.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function phase(wellBehaved, service, forSeconds) {
  const before = await usageOf(service)
  wellBehaved.send({ kind: 'start' })
  await delay(forSeconds * 1000)
  const usage = await usageOf(service)
  wellBehaved.send({ kind: 'stop' })
  const [samples] = await once(wellBehaved, 'message')
  return { samples, usage: { ...usage, cpuShare: (usage.cpuMs - before.cpuMs) / forSeconds / 10 } }
}

async function usageOf(service) {
  service.send('usage')
  const [usage] = await once(service, 'message')
  return usage
}

function report(count, { idle, storm, counts }) {
  console.log(`\n${count} hostile of ${applications} applications\n`)
  const rows = []
  for (const name of ['submit', 'status', 'list', 'upload', 'result']) {
    const [was, is] = [percentile(idle.samples[name]), percentile(storm.samples[name])]
    rows.push([name, was, is, is / Math.max(was, leastMs) <= aims.ratio, `${(is / was).toFixed(1)} x`])
  }
  const [was, is] = [percentile(idle.samples.jobStart), percentile(storm.samples.jobStart)]
  const fairMs = aims.ratio * Math.max(was, leastMs) + ((count + others) * turnMs) / slots
  rows.push(['submit to start of the job', was, is, is <= fairMs, `fair share: ${fairMs.toFixed(0)} ms`])
  for (const [name, before, after, isFine, text] of rows)
    print(`  ${name}, p95`, `${before.toFixed(1)} -> ${after.toFixed(1)} ms`, isFine, text)
  const growth = storm.usage.peakBytes / idle.usage.peakBytes
  print(
    '  memory, at most',
    `${mib(idle.usage.peakBytes)} -> ${mib(storm.usage.peakBytes)} MiB`,
    growth <= aims.memory,
    `${growth.toFixed(2)} x`,
  )
  const failures = [...idle.samples.failures, ...storm.samples.failures]
  print('  requests of the others that failed', String(failures.length), failures.length === 0, failures[0] ?? '')
  const load = ({ usage }) => `${usage.cpuShare.toFixed(0)} %, p99 ${usage.loopMs.toFixed(0)} ms`
  console.log(`  processor time of the service, delay of its event loop: ${load(idle)} -> ${load(storm)}`)
  const said = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))
  console.log(`  what the hostile ones were answered: ${said.map(([what, times]) => `${what} x ${times}`).join(', ')}`)
  return rows.every(([, , , isFine]) => isFine) && growth <= aims.memory && failures.length === 0
}

function print(name, figures, isFine, text) {
  console.log(`${name.padEnd(40)} ${figures.padEnd(24)} ${isFine ? 'met' : 'MISSED'}  ${text}`)
}

/** A database of its own on a Postgres server; SQLite needs none. */
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
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)} at the start; ` +
      `stemwork ${version}, Node ${process.version}, ${storeUrl ? 'Postgres' : 'SQLite'}; ${seconds} s idle, ` +
      `${seconds} s of storm`,
  )
}

function percentile(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(0.95 * sorted.length) - 1)] ?? NaN
}

function mib(bytes) {
  return Math.round(bytes / 1024 ** 2)
}

function option(name, fallback) {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`))
  return given ? given.slice(name.length + 3) : fallback
}
