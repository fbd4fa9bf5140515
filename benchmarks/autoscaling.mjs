// A controller that adds and removes workers, on a virtual clock: what jobs wait, and what scale-down costs. The store is the real one in
// memory (its claims, leases, hand-backs and backlog), the workers and the controller are simulated. Options: --jobs=N (10,000), --max=N
// (workers, 200), --target=S (seconds of wait, 60), --seed=N. Exit status 1 if the 95th percentile of the waits misses the target, or a
// job starts from the beginning because of scale-down.
import { memoryJobs } from '../dist/adapters/memory.js'
import { sampleJob } from '../dist/contract/job-samples.js'

const jobCount = option('jobs', 10_000)
const maxWorkers = option('max', 200)
const targetSeconds = option('target', 60)
/** Of the controller: how often it looks, how long a worker takes to start, and how long demand must stay low before workers are removed. */
const pollSeconds = 15
const startSeconds = 30
const stabilizationSeconds = 300
const minWorkers = 4
/** Of the worker: what a running job gets after SIGTERM, and the work of a job before its first checkpoint (`checkpoints.afterMs`). */
const graceSeconds = 10
const firstPartSeconds = 10
const tickMs = 1000

let now = 1_700_000_000_000
let state = option('seed', 1)
const store = memoryJobs({ clock: () => now })
const startedAt = now

// Six hours of a day's curve, with two bursts of a tenth of all jobs each within a minute.
const arrivals = Array.from({ length: jobCount }, (_, n) => {
  if (n % 10 === 0) return (n % 20 === 0 ? 3_600 : 12_600) * 1000 + random() * 60_000
  let seconds
  do seconds = random() * 21_600
  while (random() > 0.55 - 0.45 * Math.cos((2 * Math.PI * seconds) / 21_600))
  return seconds * 1000
}).sort((a, b) => a - b)

/** Seconds of work of each job, and those that are left. */
const work = new Map()
const waits = []
let restarts = 0
let handBacks = 0
let doneTwice = 0
let totalWork = 0
let statements = 0
const workers = []
const stopping = []
const lowest = []
let workerSeconds = 0
let most = 0
let ended = 0
let arrived = 0
let mean = 30
let measured = 0

for (; ended < jobCount; now += tickMs) {
  const elapsedMs = now - startedAt
  while (arrived < jobCount && arrivals[arrived] <= elapsedMs) {
    const { job } = await store.create(sampleJob({ app: `app-${arrived % 50}` }))
    const seconds = 5 + -40 * Math.log(1 - random())
    work.set(job.id, { left: seconds, seconds, dueAt: now, isBegun: false })
    totalWork += seconds
    arrived++
    statements++
  }
  for (const worker of workers) await step(worker)
  for (const worker of stopping.splice(0)) {
    await step(worker)
    if (!worker.job) continue
    if (now < worker.stopAt) stopping.push(worker)
    else await handBack(worker)
  }
  if (elapsedMs % (pollSeconds * 1000) === 0) await control()
  workerSeconds += ((workers.length + stopping.length) * tickMs) / 1000
  most = Math.max(most, workers.length)
}

waits.sort((a, b) => a - b)
const p = (share) => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]
const hours = (now - startedAt) / 3_600_000
console.log(
  `${jobCount} jobs in ${hours.toFixed(1)} h, ${(totalWork / jobCount).toFixed(1)} s of work each, at most ${maxWorkers} workers`,
)
console.log(
  `waits          p50 ${p(0.5).toFixed(1)} s, p95 ${p(0.95).toFixed(1)} s, p99 ${p(0.99).toFixed(1)} s, longest ${p(1).toFixed(1)} s; target ${targetSeconds} s`,
)
console.log(
  `workers        mean ${(workerSeconds / (hours * 3600)).toFixed(1)}, most ${most}; busy ${((100 * (totalWork + doneTwice)) / workerSeconds).toFixed(0)} % of the time`,
)
console.log(
  `scale-down     ${handBacks} jobs handed back, ${restarts} started from the beginning, ${((100 * doneTwice) / totalWork).toFixed(2)} % of the work done twice`,
)
console.log(`store          ${(statements / (hours * 3600)).toFixed(1)} operations/s on average`)
if (p(0.95) > targetSeconds || restarts > 0) process.exitCode = 1

async function step(worker) {
  if (worker.readyAt > now) return
  if (!worker.job) {
    if (worker.stopAt) return
    // An idle worker asks when it is notified, here at once; only a job that is there costs a claim.
    if ((await store.count({ statuses: ['QUEUED'] })) === 0) return
    worker.job = await store.claim({ owner: worker.name, leaseMs: 30_000, nonce: worker.name })
    statements++
    if (!worker.job) return
    const job = work.get(worker.job.id)
    if (!job.isBegun) waits.push((now - job.dueAt) / 1000)
    job.isBegun = true
    worker.beatAt = now + 10_000
  }
  const job = work.get(worker.job.id)
  job.left -= tickMs / 1000
  if (now >= worker.beatAt) {
    worker.beatAt = now + 10_000
    statements++
    await store.apply(worker.job.id, { kind: 'heartbeat', ...held(worker), leaseMs: 30_000, progress: 0.5, stage: 's' })
  }
  if (job.left > 0) return
  await store.apply(worker.job.id, {
    kind: 'succeed',
    ...held(worker),
    outputs: {},
    details: {},
    retentionMs: 1,
    messages: [],
  })
  statements++
  ended++
  measured = Math.min(measured + 1, 200)
  mean += (job.seconds - mean) / measured
  worker.job = undefined
}

/** As the ScaledObject of examples/kubernetes: what runs, and so many more that the backlog takes no longer than the target. */
async function control() {
  const [lane] = await store.backlog()
  statements += 2
  // Half of the target is for the start of workers and the pace of the controller.
  const backlogSeconds = (lane?.queued ?? 0) * mean
  const demand =
    (lane?.running ?? 0) + Math.ceil(backlogSeconds / Math.max(1, targetSeconds - startSeconds - pollSeconds))
  const desired = Math.min(maxWorkers, Math.max(minWorkers, demand))
  lowest.push({ at: now, desired })
  while (lowest[0].at < now - stabilizationSeconds * 1000) lowest.shift()
  const wanted = desired > workers.length ? desired : Math.max(...lowest.map((each) => each.desired))
  while (workers.length < wanted)
    workers.push({ name: `w${now}-${workers.length}`, readyAt: now + startSeconds * 1000 })
  // Kubernetes asks nobody who is busy: any worker may go.
  while (workers.length > wanted) stop(workers.splice(Math.floor(random() * workers.length), 1)[0])
}

/** SIGTERM: it takes no other job, and the one that it has gets some seconds to end. */
function stop(worker) {
  if (!worker.job) return
  worker.stopAt = now + graceSeconds * 1000
  stopping.push(worker)
}

/** What has been kept is not done again; a hand-back keeps the rest once there is a first part (`AttemptCheckpoint`). */
async function handBack(worker) {
  const job = work.get(worker.job.id)
  const { attempts } = worker.job
  const requeued = await store.apply(worker.job.id, { kind: 'requeue', ...held(worker), delayMs: 0, onShutdown: true })
  statements++
  handBacks++
  const done = job.seconds - job.left
  if (done >= firstPartSeconds && requeued.attempts === attempts - 1) return
  restarts++
  doneTwice += done
  job.left = job.seconds
}

function held({ job }) {
  return { token: job.token, nonce: job.lease.nonce }
}

/** mulberry32: the same jobs in each run. */
function random() {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

function option(name, fallback) {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`))
  return given ? Number(given.split('=')[1]) : fallback
}
