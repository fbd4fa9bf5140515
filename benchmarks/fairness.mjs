// Whether a hostile application can slow a well-behaved one down: `stemwork serve` with two clients over HTTP, each in
// a process of its own. First the well-behaved application is alone; then the hostile one storms: tarpit inputs,
// webhooks to dead and silent receivers, 40 parallel uploads, lists of large records and refused bodies, all at least
// as often as its limits allow; then it is killed, and all its remains have to end; then the first is alone again.
// "Idle" is the time before and after the storm together, so that drift of the machine, such as of a shared disk, is in
// both. Fails if an aim is missed. Options: --profile (writes a CPU profile of the service into the working folder),
// --store=postgres://... (default: SQLite), --seconds=N (of the storm, of the time before and of the time after),
// --uplink=N (MiB/s that the uploads share).
import { execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { client } from './fairness/api.mjs'
import { machine, option, printRows } from './shared/benchmark.mjs'

const cli = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const mebibyte = 1024 * 1024
const seconds = Number(option('seconds', '60'))
const uplink = Number(option('uplink', '25'))
const aims = { ratio: 2, growthBytes: 100_000_000 }
const quietWithinMs = 120_000

const children = []
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const store = await openStore(option('store', ''))
try {
  await printMachine()
  process.exitCode = (await measure()) ? 0 : 1
} finally {
  for (const child of children) child.kill('SIGKILL')
  await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
  await store.close()
  await rm(folder, { recursive: true, force: true })
}

async function measure() {
  const [good, bad] = [await newKey('well-behaved'), await newKey('hostile')]
  const service = await startService()
  const wellBehaved = await startClient('well-behaved', service.base, good)
  const hostile = await startClient('hostile', service.base, bad, String(uplink))
  const askAsHostile = client(service.base, bad)

  // Warms up the compilers and the first child process.
  await phase(wellBehaved, service, 8)
  const idle = await phase(wellBehaved, service, seconds)
  let counts = {}
  hostile.on('message', (message) => (counts = message))
  hostile.send('storm')
  const storm = await phase(wellBehaved, service, seconds)
  hostile.kill('SIGKILL')
  const left = await waitUntilQuiet(service, askAsHostile, idle.usage)
  const after = await phase(wellBehaved, service, seconds)
  await service.end()
  const undisturbed = (name) => [...idle.samples[name], ...after.samples[name]]

  printRows(
    Object.entries(counts)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([what, count]) => [what, String(count)]),
  )
  for (const [name, { samples, usage, load, syncMs }] of Object.entries({ idle, storm, after })) {
    printRows([
      [
        name,
        `host's load ${load.toFixed(1)}, service ${Math.round(usage.cpuMs / 10 / usage.seconds)} % of a processor, ` +
          `event loop p95 ${usage.loopDelayMs.toFixed(1)} ms`,
      ],
      ['  a sync of the same disk', text(syncMs)],
      ['  submit to response', text(samples.answerMs)],
      ['  submit to start', text(samples.startMs)],
      ['  status', text(samples.statusMs)],
      ['  memory', `${mib(usage.bytes)} at the end, peak ${mib(usage.peakBytes)}`],
      ...(samples.failures.length
        ? [['  failures', `${samples.failures.length}, the first: ${samples.failures[0]}`]]
        : []),
    ])
  }
  const growth = storm.usage.peakBytes - idle.usage.bytes
  return verdicts([
    ratioAim('submit to start, p95', undisturbed('startMs'), storm.samples.startMs),
    ratioAim('status, p95', undisturbed('statusMs'), storm.samples.statusMs),
    [
      'memory growth',
      growth < aims.growthBytes,
      `${(growth / 1e6).toFixed(0)} MB (aim: below ${aims.growthBytes / 1e6})`,
    ],
    [
      'every request of the well-behaved client answered',
      [idle, storm, after].every(({ samples }) => samples.failures.length === 0),
      '',
    ],
    ['idle again after the storm', left.length === 0, left.join('; ')],
  ])
}

function ratioAim(name, idle, storm) {
  const ratio = percentile(storm, 0.95) / percentile(idle, 0.95)
  return [name, ratio <= aims.ratio, `${ratio.toFixed(2)} x idle (aim: at most ${aims.ratio})`]
}

function verdicts(rows) {
  printRows(rows.map(([name, isMet, figure]) => [name, `${isMet ? 'met' : 'MISSED'}${figure ? `: ${figure}` : ''}`]))
  return rows.every(([, isMet]) => isMet)
}

async function phase(wellBehaved, service, seconds) {
  const before = await service.usage()
  wellBehaved.send({ kind: 'start' })
  const syncMs = await timeSyncs(seconds * 1000)
  wellBehaved.send({ kind: 'stop' })
  // Read before the samples arrive, so that the usage covers the time in which all sides were at work.
  const usage = await service.usage()
  const [samples] = await once(wellBehaved, 'message')
  return { samples, syncMs, load: loadavg()[0], usage: { ...usage, cpuMs: usage.cpuMs - before.cpuMs, seconds } }
}

/** How long the disk takes to sync one page, measured ten times a second. */
async function timeSyncs(forMs) {
  const endsAt = performance.now() + forMs
  const file = await open(join(folder, 'probe'), 'w')
  const times = []
  for (; performance.now() < endsAt; await delay(100)) {
    const startedAt = performance.now()
    await file.write(Buffer.alloc(4096), 0, 4096, 0)
    await file.datasync()
    times.push(performance.now() - startedAt)
  }
  await file.close()
  return times
}

/** Waits, up to a limit, until everything is as before the storm. Returns what is not. */
async function waitUntilQuiet(service, ask, idle) {
  const endsAt = performance.now() + quietWithinMs
  for (;;) {
    const left = await leftovers(service, ask, idle).catch((error) => [`folders that change: ${error.message}`])
    if (left.length === 0 || performance.now() > endsAt) return left
    await delay(2000)
  }
}

async function leftovers(service, ask, idle) {
  const left = []
  for (const status of ['QUEUED', 'STARTED']) {
    const { headers } = await ask(`/job?status=${status}&size=1`)
    if (headers['x-total-count'] !== '0') left.push(`${headers['x-total-count']} jobs ${status}`)
  }
  const { resources } = await service.usage()
  // Connections, file requests, timers: the store and the well-behaved application may hold as many as before.
  for (const [name, count] of Object.entries(resources)) {
    const before = idle.resources[name] ?? 0
    if (count > before) left.push(`${count} x ${name} instead of ${before}`)
  }
  const scratch = scratchFolders()
  if (scratch.length > 0) left.push(`${scratch.length} scratch folders`)
  const unfinished = readdirSync(join(folder, 'data', 'blobs'), { recursive: true }).filter((file) =>
    basename(file).startsWith('~'),
  )
  if (unfinished.length > 0) left.push(`${unfinished.length} unfinished uploads`)
  return left
}

/**
 * Folders of attempts of the service's process: in its data folder, or in the temporary folder if its store may be
 * shared.
 */
function scratchFolders() {
  return ['.', 'data/scratch']
    .map((place) => join(folder, place))
    .filter((place) => existsSync(place))
    .flatMap((place) => readdirSync(place).map((name) => join(place, name)))
    .filter((path) => basename(path).startsWith('stemwork-scratch'))
    .flatMap((root) => readdirSync(root))
}

async function newKey(app) {
  const { stdout } = await promisify(execFile)(process.execPath, [
    cli,
    'keys',
    'create',
    '--app',
    app,
    '--json',
    ...store.options,
  ])
  return JSON.parse(stdout).key
}

async function startService() {
  const profile = process.argv.includes('--profile') ? ['--cpu-prof', `--cpu-prof-dir=${process.cwd()}`] : []
  const child = spawn(
    process.execPath,
    [
      ...profile,
      '--import',
      new URL('./fairness/probe.mjs', import.meta.url).href,
      cli,
      'serve',
      '--port=0',
      '--allow-private-inputs',
      `--workflows=${fileURLToPath(new URL('./fairness/workflows.mjs', import.meta.url))}`,
      ...store.options,
    ],
    { stdio: ['ignore', 'pipe', 'ignore', 'ipc'], env: { ...process.env, TMPDIR: folder } },
  )
  children.push(child)
  const [printed] = await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), once(child, 'exit')])
  const base = /listening on (\S+)/.exec(printed)?.[1]
  if (!base) throw new Error(`stemwork serve did not start: ${printed}`)
  return {
    base,
    /** Ends the process at once, but writes the requested profile first. */
    async end() {
      child.send('exit')
      await once(child, 'exit')
    },
    async usage() {
      child.send('usage')
      const [answer] = await once(child, 'message')
      return answer
    },
  }
}

async function startClient(name, ...args) {
  const child = fork(new URL(`./fairness/${name}.mjs`, import.meta.url), args)
  children.push(child)
  await once(child, 'message')
  return child
}

/** Command-line options for the store of the jobs; for a Postgres server, of a new database. */
async function openStore(url) {
  const data = ['--data', join(folder, 'data')]
  if (!url) return { name: 'SQLite', options: data, async close() {} }
  const { Client } = await import('pg')
  const server = new Client({ connectionString: url })
  await server.connect()
  const name = `stemwork_benchmark_${process.pid}`
  await server.query(`CREATE DATABASE ${name}`)
  const { rows } = await server.query('SHOW server_version')
  const own = new URL(url)
  own.pathname = `/${name}`
  return {
    name: `PostgreSQL ${rows[0].server_version}`,
    options: [...data, '--store', own.href],
    async close() {
      await server.query(`DROP DATABASE ${name} WITH (FORCE)`)
      await server.end()
    },
  }
}

async function printMachine() {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
  printRows([
    ['machine', machine()],
    ['versions', `stemwork ${version}, Node ${process.version}, ${store.name}`],
    ['input', `${seconds} s idle, ${seconds} s of storm; uploads of ${uplink} MiB/s in total`],
  ])
}

function text(values) {
  return (
    `p50 ${percentile(values, 0.5).toFixed(1)} ms, p95 ${percentile(values, 0.95).toFixed(1)} ms, at most ` +
    `${percentile(values, 1).toFixed(1)} ms (${values.length} samples)`
  )
}

function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN
}

function mib(bytes) {
  return `${Math.round(bytes / mebibyte)} MiB`
}

function delay(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
