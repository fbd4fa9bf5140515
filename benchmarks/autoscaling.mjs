// A controller that adds and removes workers, on a virtual clock: how long jobs wait, what scaling down costs, and the
// load of the store. The store is the real one in memory (its claims, leases, hand-backs and backlog); workers and
// controller are simulated. Options: --jobs=N (10,000), --max=N (workers, 200), --hours=N (6), --target=S (seconds of
// wait, 60), --seed=N. Exit status 1 if the 95th percentile of the waits misses the target, or if scaling down makes a
// job start from the beginning. 10,000 workers: --max=12000 --jobs=250000 --hours=0.5
import { memoryJobs } from '../build/adapters/memory.js'
import { sampleJob } from '../build/contract/job-samples.js'
import { option } from './shared/benchmark.mjs'

const jobCount = option('jobs', 10_000)
const maxWorkers = option('max', 200)
const targetSeconds = option('target', 60)
const spanSeconds = option('hours', 6) * 3600
/**
 * The controller: how often it checks, how long a worker takes to start, and how long demand must stay low before
 * workers are removed.
 */
const pollSeconds = 15
const startSeconds = 30
const stabilizationSeconds = 300
const minWorkers = 4
/**
 * The worker: the time a running job gets after SIGTERM, and a job's work before its first checkpoint
 * (`checkpoints.afterMs`).
 */
const graceSeconds = 10
const firstPartSeconds = 5
/**
 * A worker's intervals between heartbeats, sweeps and reports to the list of workers, and the statements of a sweep.
 */
const beatSeconds = 10
const sweepSeconds = 15
const tellSeconds = 30
const sweepStatements = 5
const tickMs = 1000

let now = 1_700_000_000_000
let state = option('seed', 1)
const store = memoryJobs({ clock: () => now })
const startedAt = now

// Load over a day, with two bursts, each of a twentieth of all jobs within a minute.
const arrivals = Array.from({ length: jobCount }, (_, n) => {
  if (n % 10 === 0) return (n % 20 === 0 ? spanSeconds / 6 : (spanSeconds * 7) / 12) * 1000 + random() * 60_000
  let seconds
  do seconds = random() * spanSeconds
  while (random() > 0.55 - 0.45 * Math.cos((2 * Math.PI * seconds) / spanSeconds))
  return seconds * 1000
}).sort((a, b) => a - b)

/** Seconds of work of each job: total and done. */
const work = new Map()
const waits = []
let restarts = 0
let handBacks = 0
let doneTwice = 0
let totalWork = 0
const statements = {
  'jobs: create, claim, end': 0,
  heartbeats: 0,
  'sweeps of workers': 0,
  'reports of workers': 0,
  controller: 0,
}
let mostStatements = 0
let mostWithProgress = 0
/** Workers that may take jobs; number of workers told to stop that still run a job; workers without a job. */
const workers = []
let stopping = 0
const idle = []
/** Events by the time at which they are due. */
const plan = new Map()
const lowest = []
let workerSeconds = 0
let most = 0
let ended = 0
let arrived = 0
let queued = 0
let busy = 0
let made = 0
let mean = 30
let measured = 0

for (; ended < jobCount; now += tickMs) {
  const elapsedMs = now - startedAt
  const before = total()
  while (arrived < jobCount && arrivals[arrived] <= elapsedMs) {
    const { job } = await store.create(sampleJob({ app: `app-${arrived % 50}` }))
    const seconds = 5 + -40 * Math.log(1 - random())
    work.set(job.id, { done: 0, seconds, dueAt: now, isBegun: false })
    totalWork += seconds
    arrived++
    queued++
    statements['jobs: create, claim, end']++
  }
  for (const event of plan.get(now) ?? []) await event()
  plan.delete(now)
  // An idle worker claims when it is notified, here at once; an attempt that finds no job costs nothing.
  while (queued > 0 && idle.length > 0) await begin(idle.pop())
  if (elapsedMs % (pollSeconds * 1000) === 0) await control()
  const living = workers.length + stopping
  statements['sweeps of workers'] += (living * sweepStatements) / sweepSeconds
  statements['reports of workers'] += living / tellSeconds
  workerSeconds += (living * tickMs) / 1000
  most = Math.max(most, workers.length)
  mostStatements = Math.max(mostStatements, total() - before)
  mostWithProgress = Math.max(mostWithProgress, total() - before + busy * (1 - 1 / beatSeconds))
}

waits.sort((a, b) => a - b)
const p = (share) => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]
const seconds = (now - startedAt) / 1000
const [record] = await store.list({ limit: 1 })
const recordBytes = JSON.stringify(record).length
console.log(
  `${jobCount} jobs in ${(seconds / 3600).toFixed(1)} h, ${(totalWork / jobCount).toFixed(1)} s of work each, at ` +
    `most ${maxWorkers} workers`,
)
console.log(
  `waits          p50 ${p(0.5).toFixed(1)} s, p95 ${p(0.95).toFixed(1)} s, p99 ${p(0.99).toFixed(1)} s, longest ` +
    `${p(1).toFixed(1)} s; target ${targetSeconds} s`,
)
console.log(
  `workers        mean ${(workerSeconds / seconds).toFixed(1)}, peak ${most}; busy ` +
    `${((100 * (totalWork + doneTwice)) / workerSeconds).toFixed(0)} % of the time`,
)
console.log(
  `scale-down     ${handBacks} jobs handed back, ${restarts} started from the beginning, ` +
    `${((100 * doneTwice) / totalWork).toFixed(2)} % of the work done twice`,
)
console.log(
  `store          ${(total() / seconds).toFixed(1)} operations/s on average, at most ${mostStatements.toFixed(0)} ` +
    `in a second; ${mostWithProgress.toFixed(0)} if every running job reports progress each second`,
)
for (const [kind, count] of Object.entries(statements))
  console.log(`  ${kind.padEnd(26)} ${(count / seconds).toFixed(1)}/s`)
console.log(
  `rows           ${jobCount} of ${recordBytes} bytes (JSON): ${((recordBytes * jobCount) / 1e6).toFixed(0)} MB, ` +
    `${((jobCount / seconds) * 86_400).toExponential(1)} a day at this pace; ${most} of workers`,
)
if (p(0.95) > targetSeconds || restarts > 0) process.exitCode = 1

function total() {
  return Object.values(statements).reduce((sum, count) => sum + count, 0)
}

function at(time, event) {
  const tick = startedAt + Math.ceil((time - startedAt) / tickMs) * tickMs
  const events = plan.get(tick)
  if (events) events.push(event)
  else plan.set(tick, [event])
}

function start() {
  const worker = { name: `w${made++}`, isGone: false }
  workers.push(worker)
  at(now + startSeconds * 1000, () => void (worker.isGone || idle.push(worker)))
}

async function begin(worker) {
  if (worker.isGone) return
  worker.job = await store.claim({ owner: worker.name, leaseMs: 30_000, nonce: worker.name })
  statements['jobs: create, claim, end']++
  queued--
  busy++
  const job = work.get(worker.job.id)
  if (!job.isBegun) waits.push((now - job.dueAt) / 1000)
  job.isBegun = true
  const claim = worker.job
  worker.begunAt = now
  at(now + (job.seconds - job.done) * 1000, () => worker.job === claim && end(worker))
  at(now + beatSeconds * 1000, () => beat(worker, claim))
}

async function beat(worker, claim) {
  if (worker.job !== claim) return
  statements.heartbeats++
  await store.apply(claim.id, { kind: 'heartbeat', ...held(worker), leaseMs: 30_000, progress: 0.5, stage: 's' })
  at(now + beatSeconds * 1000, () => beat(worker, claim))
}

async function end(worker) {
  const { id } = worker.job
  await store.apply(id, {
    kind: 'succeed',
    ...held(worker),
    outputs: {},
    details: {},
    retentionMs: 1,
    messages: [],
  })
  statements['jobs: create, claim, end']++
  ended++
  measured = Math.min(measured + 1, 200)
  mean += (work.get(id).seconds - mean) / measured
  free(worker)
}

function free(worker) {
  busy--
  worker.job = undefined
  if (worker.isGone) stopping--
  else idle.push(worker)
}

/** Works like the ScaledObject of examples/kubernetes: the busy workers, plus as many as clear the backlog in time. */
async function control() {
  const [lane] = await store.backlog()
  statements.controller += 2
  // The target includes the time to start workers and the controller's interval.
  const backlogSeconds = (lane?.queued ?? 0) * mean
  const demand =
    (lane?.running ?? 0) + Math.ceil(backlogSeconds / Math.max(1, targetSeconds - startSeconds - pollSeconds))
  const desired = Math.min(maxWorkers, Math.max(minWorkers, demand))
  lowest.push({ at: now, desired })
  while (lowest[0].at < now - stabilizationSeconds * 1000) lowest.shift()
  const wanted = desired > workers.length ? desired : Math.max(...lowest.map((each) => each.desired))
  while (workers.length < wanted) start()
  // Kubernetes does not spare busy workers: any worker may be removed.
  while (workers.length > wanted) stop(workers.splice(Math.floor(random() * workers.length), 1)[0])
}

/** Sends SIGTERM: the worker takes no further job, and its current job has the grace period to end. */
function stop(worker) {
  worker.isGone = true
  if (!worker.job) return
  stopping++
  const claim = worker.job
  at(now + graceSeconds * 1000, () => worker.job === claim && handBack(worker))
}

/** A hand-back keeps the finished parts if there is at least one (`AttemptCheckpoint`); they are not repeated. */
async function handBack(worker) {
  const job = work.get(worker.job.id)
  const { attempts } = worker.job
  job.done += (now - worker.begunAt) / 1000
  const requeued = await store.apply(worker.job.id, { kind: 'requeue', ...held(worker), delayMs: 0, onShutdown: true })
  statements['jobs: create, claim, end']++
  handBacks++
  queued++
  free(worker)
  if (job.done >= firstPartSeconds && requeued.attempts === attempts - 1) return
  restarts++
  doneTwice += job.done
  job.done = 0
}

function held({ job }) {
  return { token: job.token, nonce: job.lease.nonce }
}

/** mulberry32: every run draws the same jobs. */
function random() {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}
