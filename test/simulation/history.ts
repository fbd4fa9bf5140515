// Modules that the engine loads on demand: loading them would take real time.
import '../../src/core/engine/dispatch/attempt/attempt.js'
import '../../src/core/engine/fetch/guarded-fetch.js'
import '../../src/core/engine/runner/execute.js'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { StemworkError } from '../../src/core/engine/errors.js'
import { JobEngine } from '../../src/core/engine/engine.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { silentLogger } from '../../src/core/engine/ports/logger.js'
import type { BlobStore } from '../../src/core/engine/ports/blob-store.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import { newWebhookSecret } from '../../src/core/engine/webhooks/signature.js'
import { textlessWorkflow } from './workflows.js'
import { Ledger, meteredJobs, type Seen } from './ledger.js'
import { type Network, remote, type SimulatedNode, World } from './world.js'

export const leaseMs = 20_000
const sweepIntervalMs = 10_000
const jobsMs = 3_600_000
/** Longer than three outages in such quick succession that no call is answered in between. */
const storageOutageMs = 300_000
const year = 365 * 24 * 3_600_000

/** Remedies against defects. If one is removed, the simulation must find its defect. */
export interface Remedies {
  /** Claims leave other workers' jobs alone until these workers have had time to return after an outage. */
  takeOverGrace: boolean
  /** A run continues during a store outage. */
  runThroughOutages: boolean
  /** A batch is written in one step with its jobs. */
  batchWithJobs: boolean
  /** Any sweep ends canceled jobs of lost workers. */
  endAbandoned: boolean
  /** Retention follows the store's clock. */
  storeTime: boolean
  /** A job that no worker can take over does not count as running any longer. */
  releaseLapsed: boolean
  /** A job whose claim was answered late runs only if no other worker has it. */
  checkLateClaims: boolean
}
export const allRemedies: Remedies = {
  takeOverGrace: true,
  runThroughOutages: true,
  batchWithJobs: true,
  endAbandoned: true,
  storeTime: true,
  releaseLapsed: true,
  checkLateClaims: true,
}

interface Deployment {
  world: World
  ledger: Ledger
  store: JobStore
  network: Network & { isAway: boolean; cut: Set<SimulatedNode> }
  nodes: { node: SimulatedNode; engine: JobEngine }[]
}

/**
 * One history of a deployment of three nodes: the seed decides the requests of clients and the faults.
 *
 * @returns violations, and a digest of everything that happened
 */
export async function runHistory(
  seed: number,
  remedies: Remedies = allRemedies,
): Promise<{ violations: string[]; seen: Readonly<Seen>; trace: number }> {
  const world = new World(seed)
  const leave = world.enter()
  try {
    const deployment = await deploy(world, remedies)
    const { ledger } = deployment
    scheduleRequests(deployment)
    scheduleFaults(deployment)
    await world.pass(240_000)
    heal(deployment)
    // Longer than any stall of a node and any hanging call.
    await world.pass(60_000)
    for (let left = 20; left > 0 && (await ledger.isOpen(deployment.store)); left--) await world.pass(60_000)
    await ledger.checkEnd(deployment.store)
    return { violations: [...ledger.violations, ...world.escapes], seen: ledger.seen, trace: world.trace }
  } finally {
    leave()
  }
}

async function deploy(world: World, remedies: Remedies): Promise<Deployment> {
  const inner = memoryJobs({ clock: () => world.now })
  const ledger = new Ledger(world, jobsMs)
  const store: JobStore = ledger.watching({ ...inner, traits: { scope: 'shared' } })
  const applications = memoryApplications()
  const metered = { id: 'metered', name: 'metered', createdAt: 0, webhook: null, quota: { jobs: meteredJobs } }
  await applications.putApplication(metered)
  const blobs: BlobStore = { ...memoryBlobs({ clock: () => world.now }), traits: { scope: 'shared' } }
  await store.changeRule({ kind: 'application', id: 'limited' }, { maxRunning: 1 })
  const network: Deployment['network'] = {
    isAway: false,
    cut: new Set(),
    hangs: false,
    losses: 0.002,
    isCut: (node) => network.isAway || network.cut.has(node),
    onAnswer: () => {},
  }
  const nodes = ['ann', 'bob', 'eve'].map((name, index) => {
    const node = world.node(name)
    const jobs = withoutRemedies(remote(store, node, world, network), remedies)
    // A newer version on one node writes a field unknown to the others.
    if (index === 1) Object.assign(jobs, { create: withFutureField(jobs.create) })
    Object.assign(jobs, { documents: remote(store.documents, node, world, network) })
    const workflow = textlessWorkflow('sim/any', ledger.stage(node))
    const rare = textlessWorkflow('sim/rare', ledger.stage(node))
    // Only the first node can run jobs of the rare workflow.
    const own = index === 0 ? [workflow, rare] : [workflow]
    const engine = world.on(
      node,
      () =>
        new JobEngine(
          {
            jobs,
            blobs,
            queue: memoryQueue(),
            applications,
            workflows: own,
            runner: inlineRunner({ resolve: (id) => (id === rare.id ? rare : workflow) }),
          },
          {
            owner: name,
            logger: silentLogger,
            webhooks: { secret: newWebhookSecret() },
            retention: { jobsMs },
            dispatch: {
              leaseMs,
              sweepIntervalMs,
              progressIntervalMs: 10_000,
              concurrency: 2,
              maxLapses: 100,
              storageOutageMs: remedies.runThroughOutages ? storageOutageMs : 0,
            },
          },
        ),
    )
    return { node, engine }
  })
  for (const { node, engine } of nodes) await world.until(world.on(node, () => engine.start()))
  return { world, ledger, store, network, nodes }
}

/** The store as used by code without some of the remedies. */
function withoutRemedies(jobs: JobStore, remedies: Remedies): JobStore {
  const methods = (Object.keys(jobs) as (keyof JobStore)[]).map((name) => [name, jobs[name]])
  const plain = Object.fromEntries(methods) as unknown as JobStore
  const { apply, claim, createAll, due, get, time } = plain
  if (!remedies.takeOverGrace) plain.claim = (request) => claim({ ...request, lapsedBefore: undefined })
  if (!remedies.releaseLapsed)
    plain.apply = async (id, change) => (change.kind === 'release' ? undefined : await apply(id, change))
  if (!remedies.checkLateClaims)
    // Later heartbeats name a stage, because a stage reports itself before its first one.
    plain.apply = (id, change) => (change.kind === 'heartbeat' && !change.stage ? get(id) : apply(id, change))
  if (!remedies.storeTime) plain.time = async () => (await time(), Date.now())
  if (!remedies.endAbandoned)
    plain.due = async (reason, ...rest) => (reason === 'abandoned' ? [] : await due(reason, ...rest))
  if (!remedies.batchWithJobs)
    plain.createAll = async (given, { document, ...limits } = {}) => {
      if (document && (await plain.documents.put(document, document)) === undefined) return undefined
      return await createAll(given, limits)
    }
  return plain
}

function withFutureField(create: JobStore['create']): JobStore['create'] {
  return (job, options) => create({ ...job, ofTheFuture: { kept: true } } as JobRecord, options)
}

/** Submissions, batches and cancellations of clients, which repeat nothing. */
function scheduleRequests({ world, ledger, nodes, store }: Deployment): void {
  const { random } = world
  for (let n = 0; n < 8; n++) {
    world.later(random.between(0, 150_000), () => {
      const { node, engine } = random.pick(nodes)
      if (node.isDead || node.isFrozen) return
      const [app, workflow] = [
        random.pick(['app', 'app', 'limited', 'limited', 'metered']),
        random.pick(['sim/any', 'sim/any', 'sim/rare']),
      ]
      const seconds = random.between(1, 60)
      const webhook = random.chance(0.3) ? { url: 'http://127.0.0.1:9/' } : undefined
      const submit = () => engine.submit({ app, workflow, params: { seconds }, webhook })
      void world.on(node, submit).then(
        ({ job }) => {
          ledger.accepted(job)
          if (!random.chance(0.3)) return
          world.later(random.between(0, 60_000), () => {
            const other = random.pick(nodes)
            if (other.node.isDead) return
            const cancel = () => other.engine.cancel(job.id)
            void world.on(other.node, cancel).then(
              (canceled) => canceled && ledger.canceled(job.id),
              () => {},
            )
          })
        },
        (error: unknown) => StemworkError.is(error) && error.code === 'QUOTA_EXCEEDED' && ledger.refused(),
      )
    })
  }
  for (let n = 0; n < 2; n++) {
    world.later(random.between(0, 120_000), () => {
      const { node, engine } = random.pick(nodes)
      if (node.isDead || node.isFrozen) return
      const job = { workflow: 'sim/any', params: { seconds: random.between(1, 30) } }
      const webhook = { url: 'http://127.0.0.1:9/' }
      const submit = () => engine.submitBatch({ app: 'app', name: `batch-${n}`, jobs: [job, job], webhook })
      void world.on(node, submit).then(
        ({ ids }) => ledger.batchAccepted(`batch-${n}`, ids.length),
        () => {},
      )
    })
  }
  // A job that ended before the history, and is kept for an hour.
  const old = { id: 'old-job', app: 'old', workflow: 'sim/none', params: {}, seconds: 0 }
  ledger.endedBefore(old.id, store)
}

/** Schedules one or two faults. */
function scheduleFaults({ world, network, nodes, ledger }: Deployment): void {
  const { random } = world
  const faults = {
    outage(at: number) {
      world.later(at, () => {
        network.isAway = true
        network.hangs = random.chance(0.4)
      })
      world.later(at + random.between(leaseMs / 4, 4 * leaseMs), () => (network.isAway = false))
    },
    cut(at: number) {
      const { node } = random.pick(nodes)
      world.later(at, () => {
        network.cut.add(node)
        network.hangs = random.chance(0.4)
        ledger.disturbed(node)
      })
      world.later(at + random.between(leaseMs / 4, 4 * leaseMs), () => {
        network.cut.delete(node)
        ledger.disturbed(node)
      })
    },
    freeze(at: number) {
      const { node } = random.pick(nodes)
      const forMs = random.between(1000, 100_000)
      world.later(at, () => {
        ledger.disturbed(node)
        world.freeze(node, forMs)
      })
      world.later(at + forMs, () => ledger.disturbed(node))
    },
    /** Freezes the process between two of its calls. */
    freezeAtAnswer(at: number) {
      const { node } = random.pick(nodes)
      world.later(at, () => {
        network.onAnswer = (answered) => {
          if (answered !== node || !random.chance(0.2)) return
          network.onAnswer = () => {}
          const forMs = random.between(60_000, 100_000)
          ledger.disturbed(node)
          world.freeze(node, forMs)
          world.later(forMs, () => ledger.disturbed(node))
        }
      })
    },
    crash(at: number) {
      const { node } = random.pick(nodes)
      world.later(at, () => {
        if (nodes.filter((each) => !each.node.isDead).length === 1) return
        node.isDead = true
        ledger.disturbed(node)
      })
    },
    clock(at: number) {
      const { node } = random.pick(nodes)
      world.later(at, () => (node.skewMs = random.pick([year, -year, 2 * 3_600_000])))
    },
  }
  for (let n = random.between(1, 3); n > 0; n--) {
    const kind = random.pick(Object.keys(faults) as (keyof typeof faults)[])
    faults[kind](random.between(10_000, 180_000))
  }
}

function heal({ network, nodes }: Deployment): void {
  network.isAway = false
  network.cut.clear()
  network.losses = 0
  network.onAnswer = () => {}
  for (const { node } of nodes) node.skewMs = 0
}
