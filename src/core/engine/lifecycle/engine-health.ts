import type { Dispatcher } from '../dispatch/dispatcher.js'
import type { FileSweep } from '../dispatch/sweep/file-sweep.js'
import type { EngineOptions } from '../options.js'
import type { JobQueue } from '../ports/job-queue.js'
import { type JobStore, mostCounted } from '../ports/job-store.js'
import type { Logger } from '../ports/logger.js'
import { within } from '../ports/within.js'
import type { Runner } from '../ports/runner.js'
import { StemworkError } from '../errors.js'
import { clockProblem, type StoreClock } from '../store-clock.js'
import { type Readiness, unreadyText } from '../runner/readiness.js'
import { noWorkerText } from '../queries/waiting.js'
import type { WorkerRegistry } from '../workers/worker-registry.js'
import type { SharedParts } from '../engine-parts.js'

export interface EngineHealth {
  ok: boolean
  /** One entry for each part that does not work, for operators. */
  problems: string[]
  /** Findings for operators although all parts work, such as files of another deployment that a sweep found. */
  warnings: string[]
  running: number
  /** Waiting jobs of all applications, counted up to 10,000. */
  queued: number
  runner: ReturnType<Runner['status']>
}

export interface ExaminedParts extends Pick<SharedParts, 'jobs' | 'queue' | 'runner' | 'clock' | 'options' | 'logger'> {
  dispatcher: Dispatcher
  fileSweep: FileSweep
  /** Whether the stores accept changes. */
  checks: { blobs(): Promise<void>; documents(): Promise<void> }
  readiness: Readiness
  workers: WorkerRegistry
}

/** Most ids in one warning. */
const mostNamed = 5
/** Prometheus waits for 10 s, and most load balancers for less; the store itself has longer. */
const storeTimeoutMs = 5_000
const noAnswer = () => new Error(`The job store did not answer within ${storeTimeoutMs} ms.`)

/** @param state `runsJobs`: whether this process runs jobs, so that its runner must be ready */
export async function engineHealth(
  { jobs, queue, runner, dispatcher, fileSweep, checks, readiness, workers, clock, options, logger }: ExaminedParts,
  { runsJobs, isClosing }: { runsJobs: boolean; isClosing: boolean },
): Promise<EngineHealth> {
  const problems: string[] = []
  const queueWarnings = silentQueue(queue, logger, options)
  const isReady =
    runsJobs &&
    !isClosing &&
    (await readiness.check().then(
      () => true,
      (error: unknown) => {
        problems.push(`Jobs cannot run in this process. ${unreadyText(error)}`)
        return false
      },
    ))
  // A store may count from an index in memory, but must read usage from storage, which shows whether it answers.
  const reads = Promise.all([jobs.count({ statuses: ['QUEUED'] }, { max: mostCounted }), jobs.usage('')])
  const [queued] = await within(reads, storeTimeoutMs, noAnswer).catch((error: unknown) => {
    logger.warn({ err: error }, 'The job store did not answer a health check.')
    problems.push('The job store does not answer.')
    return [undefined]
  })
  // What cannot be read is one problem, not two.
  if (queued !== undefined)
    await checks.documents().catch((error: unknown) => {
      logger.warn({ err: error }, 'The job store took no change in a health check.')
      problems.push(`The job store takes no changes. ${reasonOf(error)}`)
    })
  await checks.blobs().catch((error: unknown) => {
    logger.warn({ err: error }, 'The blob store did not take a small file in a health check.')
    problems.push(`Files cannot be stored or removed. ${reasonOf(error)}`)
  })
  if (isClosing) problems.push('The service is shutting down.')
  return {
    ok: problems.length === 0,
    problems,
    warnings: [
      ...(isReady ? [...readiness.unavailable()].map(([id, why]) => `The workflow ${id} is unavailable: ${why}`) : []),
      ...[fileSweep.problem, runsJobs ? await dispatcher.diskWarning() : undefined].filter(
        (text) => text !== undefined,
      ),
      ...(await queueWarnings),
      ...(queued === undefined ? [] : await storeWarnings({ jobs, clock, workers, options })),
    ],
    running: dispatcher.running,
    queued: queued ?? 0,
    runner: runner.status(),
  }
}

const reasonOf = (error: unknown) => (StemworkError.is(error) ? error.message : 'The log says why.')

/** Warnings that read the job store. Not called while it is silent, because each would wait for it again. */
async function storeWarnings({
  jobs,
  clock,
  workers,
  options,
}: Pick<ExaminedParts, 'jobs' | 'clock' | 'workers' | 'options'>): Promise<string[]> {
  return [
    ...(await wrongClock(clock)),
    ...(await lostJobs(jobs, clock, options)),
    ...(await unreadableJobs(jobs)),
    ...(await unservedJobs(workers, options)),
  ]
}

/** Only a warning, because jobs still start, if later: a problem would make a load balancer remove all nodes. */
async function silentQueue(queue: JobQueue, logger: Logger, { dispatch }: EngineOptions): Promise<string[]> {
  try {
    await queue.check()
    return []
  } catch (error) {
    logger.warn({ err: error }, 'The queue did not answer a health check.')
    return [
      `The queue does not answer. Workers find jobs only by their sweep, every ${dispatch.sweepIntervalMs / 1000} s.`,
    ]
  }
}

async function wrongClock(clock: StoreClock): Promise<string[]> {
  const problem = await clockProblem(clock).catch(() => undefined)
  return problem === undefined ? [] : [problem]
}

/** Jobs that are invisible because their records cannot be read. */
async function unreadableJobs(jobs: JobStore): Promise<string[]> {
  const ids = await jobs.unreadable().catch(() => [])
  if (ids.length === 0) return []
  const named = ids.slice(0, mostNamed).join(', ') + (ids.length > mostNamed ? ', ...' : '')
  return [
    `${ids.length} jobs cannot be read and are left out of lists and claims: ${named}. Restore their records from ` +
      'a backup, or remove them. A newer version of the library may also have written them.',
  ]
}

/** Warns of jobs without a worker that have waited so long that a worker that just started would be known by now. */
async function unservedJobs(
  workers: WorkerRegistry,
  { dispatch: { leaseMs, sweepIntervalMs } }: EngineOptions,
): Promise<string[]> {
  const pools = await workers.pools().catch(() => [])
  return pools
    .filter((pool) => pool.queued > 0 && pool.workers === 0 && pool.oldestMs > leaseMs + 2 * sweepIntervalMs)
    .slice(0, mostNamed)
    .map(({ workflow, needs, queued }) => `${noWorkerText(workflow, needs)}, and ${queued} wait.`)
}

/** Warns of jobs whose leases expired so long ago that a live worker with room would have taken them over. */
async function lostJobs(
  jobs: JobStore,
  clock: StoreClock,
  { dispatch: { leaseMs, sweepIntervalMs } }: EngineOptions,
): Promise<string[]> {
  const due = await jobs.due('lapsed', 100).catch(() => [])
  if (due.length === 0) return []
  // In the first lease after an outage, no worker takes over jobs (`StoreContact`).
  const longAgo = (await clock.time()) - 2 * leaseMs - 2 * sweepIntervalMs
  const { length } = due.filter(({ lease }) => lease !== null && lease.until < longAgo)
  return length === 0
    ? []
    : [`${length} running jobs lost their worker and no other has taken them over. Check that workers are running.`]
}
