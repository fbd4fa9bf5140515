import { setTimeout as delay } from 'node:timers/promises'
import { s3Blobs } from '../../src/adapters/blobs/s3/index.js'
import { memoryApplications } from '../../src/adapters/memory.js'
import { JobEngine } from '../../src/core/engine/engine.js'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import { s3ClientOf } from '../servers/s3-client.js'
import { CrashClient, type SubmittedJob } from './client.js'
import { type CrashDeployment, startDeployment } from './deployment.js'
import { bringFaults, type FaultName, type Hit } from './faults.js'
import { readLedger } from './ledger.js'
import { otherBuild } from './other-build.js'
import { seededRandom } from './random.js'
import { judge, type Verdict } from './verdict.js'

export interface CrashOptions {
  /** Root folder of this repository, with a build in `dist`. */
  root: string
  seed: number
  queue: 'bullmq' | 'postgres'
  /** Duration of the faults; jobs are submitted for most of it. */
  seconds: number
  jobs: number
  workers: number
  apiNodes: number
  /** A version that every second node runs: `next` or a git revision. Default: none. */
  beside?: string
  outageSeconds: number
  faults: Partial<Record<FaultName, number>>
  /** Time after the last fault; jobs that have not ended by then are stuck. */
  settleSeconds: number
  /** Whether nodes are ended as a deployment does, and awaited; otherwise they are killed with -9. */
  stopsGently: boolean
  log?: (line: string) => void
}

export interface CrashReport extends Verdict {
  faults: Partial<Record<FaultName, number>>
  /**
   * Number of times that the whole machine stalled long enough for leases to expire, which is no fault and allows no
   * conclusions.
   */
  stalls: number
  /** The last output of nodes that exited by themselves when they should have kept running. */
  unexpectedExits: string[]
  /** Nodes that did not end within a minute of SIGTERM. */
  notStopped: number
  unfinishedUploads: number
  wrongAnswers: Record<string, number>
  seconds: number
}

const leaseSeconds = 4

/**
 * Lets clients submit jobs to a deployment of real processes with separate servers, while faults hit it, and counts
 * the outcomes of the jobs: by the answers that the clients got, by the ledger of the database, and by the files
 * in the bucket.
 */
export async function crashRun(options: CrashOptions): Promise<CrashReport> {
  const { seed, log = () => {} } = options
  const startedAt = performance.now()
  const random = seededRandom(seed)
  const other = options.beside === undefined ? undefined : await otherBuild(options.root, options.beside)
  try {
    const deployment = await startDeployment({ ...options, otherBuild: other?.folder, leaseSeconds })
    try {
      const client = new CrashClient(deployment)
      const stalls = noteStalls()
      const [submitted, { hits, done }] = await Promise.all([
        submitAll(client, deployment, options, random),
        bringFaults(deployment, { ...options, random, counts: options.faults, leaseSeconds }, log),
      ])
      log('the last fault is over')
      await untilEnded(deployment, submitted, options.settleSeconds, log)
      const texts = await Promise.all(submitted.map((job) => textsOf(client, deployment, job)))
      const stopped = await Promise.all(
        deployment.nodes.map(({ process }) => process.stop(options.stopsGently ? 60_000 : 0)),
      )
      stalls.stop()
      const verdict = await inspect(deployment, submitted, texts, [...hits, ...stalls.hits])
      return {
        ...verdict,
        faults: done,
        stalls: stalls.hits.length,
        unexpectedExits: deployment.nodes.flatMap(({ name, process }) =>
          process.unexpectedExits.map((words) => `${name} ended, ${words}`),
        ),
        notStopped: options.stopsGently ? stopped.filter((isStopped) => !isStopped).length : 0,
        unfinishedUploads: deployment.s3.bucket('media').uploads.size,
        wrongAnswers: client.wrongAnswers,
        seconds: Math.round((performance.now() - startedAt) / 1000),
      }
    } finally {
      await deployment.close()
    }
  } finally {
    other?.remove()
  }
}

/** Jobs are submitted during most of the faults, so that there is always work in progress. */
async function submitAll(
  client: CrashClient,
  { keys }: CrashDeployment,
  { jobs, seconds }: CrashOptions,
  random: () => number,
): Promise<SubmittedJob[]> {
  const plans = Array.from({ length: jobs }, (_, number) => ({
    number,
    key: keys[number % keys.length] ?? '',
    atMs: random() * seconds * 900,
    isBad: random() < 0.05,
    hasUpload: random() < 0.3,
  }))
  return await Promise.all(
    plans.map(async ({ number, key, atMs, ...kind }) => {
      await delay(atMs)
      return await client.submit(number, key, kind)
    }),
  )
}

/** Watches for pauses of this process, during which the nodes beside it may not have run either. */
function noteStalls(): { hits: Hit[]; stop(): void } {
  const hits: Hit[] = []
  let last = Date.now()
  const timer = setInterval(() => {
    const now = Date.now()
    if (now - last > (leaseSeconds * 1000) / 4) hits.push({ pid: undefined, from: last, until: now })
    last = now
  }, 100)
  return { hits, stop: () => clearInterval(timer) }
}

async function untilEnded(
  { stores }: CrashDeployment,
  submitted: readonly SubmittedJob[],
  seconds: number,
  log: (line: string) => void,
): Promise<void> {
  const giveUpAt = performance.now() + seconds * 1000
  for (;;) {
    const left = submitted.length - (await stores.jobs.count({ statuses: ['SUCCEEDED', 'FAILED'] }))
    log(`${left} of ${submitted.length} jobs have not ended`)
    if (left <= 0 || performance.now() > giveUpAt) return
    await delay(1000)
  }
}

async function textsOf(client: CrashClient, { stores }: CrashDeployment, job: SubmittedJob) {
  const [id = ''] = job.ids
  return (await stores.jobs.get(id))?.status === 'SUCCEEDED' ? await client.results(id, job.key) : {}
}

/** Inspects the results after all nodes have ended, so that nothing changes any more. */
async function inspect(
  { pool, stores, s3, nodes }: CrashDeployment,
  submitted: readonly SubmittedJob[],
  texts: readonly Record<string, string>[],
  hits: readonly Hit[],
): Promise<Verdict> {
  const client = s3ClientOf(s3)
  const blobs = s3Blobs({ client, bucket: 'media' })
  const engine = new JobEngine(
    {
      jobs: stores.jobs,
      blobs,
      queue: memoryQueue(),
      applications: memoryApplications(),
      workflows: [],
      runner: inlineRunner({
        resolve() {
          throw new Error('Nothing runs here.')
        },
      }),
    },
    { retention: { orphansMs: 0 } },
  )
  try {
    await engine.sweep({ files: true })
    const files: string[] = []
    for await (const { key } of blobs.list('results/')) files.push(key)
    const records = await stores.jobs.list({ limit: submitted.length * 2 })
    return judge({
      submitted,
      texts,
      hits,
      records,
      ledger: await readLedger(pool),
      uses: (await stores.jobs.ledger?.entries({ fromDay: 0, toDay: 1e6, limit: 1e6 })) ?? [],
      files,
      pidsOfOtherBuild: new Set(
        nodes.filter(({ isOtherBuild }) => isOtherBuild).flatMap(({ process }) => [...process.pids]),
      ),
    })
  } finally {
    await engine.close()
    client.destroy()
  }
}
