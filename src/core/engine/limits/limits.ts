import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { StemworkError } from '../errors.js'
import {
  type LimitChange,
  limitChangeSchema,
  type Limits,
  limitsSchema,
  noUsage,
  quotaExceeded,
  type Usage,
} from '../job/quota.js'
import type { EngineOptions, EngineSettings } from '../options.js'
import type { Application, ApplicationStore } from '../ports/application-store.js'
import type { DocumentStore } from '../ports/document-store.js'
import type { JobStore } from '../ports/job-store.js'
import { addCharge, usageOf } from './audio-charges.js'
import { checkInput, issueTexts } from '../workflow/check-input.js'
import type { SharedParts } from '../engine-parts.js'

/** An application's limits and usage. */
export interface ApplicationLimits {
  own: Limits
  /** The limits in effect: its own override the defaults. */
  effective: Limits
  /** Today's usage; counted while the application has a quota. */
  used: Usage
  /** Changes whenever `own` does. */
  revision: string
}

export function ownLimits(application: Application | undefined): Limits {
  const { quota, maxQueuedJobs } = application ?? {}
  return { ...quota, ...(maxQueuedJobs !== undefined && { maxQueuedJobs }) }
}

export function effectiveLimits(application: Application | undefined, options: EngineOptions): Limits {
  return { ...limitsForAll(options), ...ownLimits(application) }
}

type LimitPorts = Pick<SharedParts, 'jobs' | 'clock' | 'applications' | 'options'>

/** See `JobEngine.limits`. */
export async function limitsOf(
  app: string,
  { jobs, clock, applications, options }: LimitPorts,
): Promise<ApplicationLimits> {
  const application = await applications.getApplication(app)
  const effective = effectiveLimits(application, options)
  const own = ownLimits(application)
  return { own, effective, used: await usageOf(app, { jobs, clock }), revision: revisionOf(own) }
}

/** See `JobEngine.chargeAudio`. */
export async function chargeAudio(
  app: string,
  seconds: number,
  { jobs, clock, applications, options }: LimitPorts,
): Promise<void> {
  const { audioMinutes } = effectiveLimits(await applications.getApplication(app), options)
  if (audioMinutes === undefined) return
  if (seconds > 0) await addCharge(app, seconds, { jobs, clock })
  const { audioSeconds } = await usageOf(app, { jobs, clock })
  const error = quotaExceeded({ audioMinutes }, { ...noUsage, audioSeconds }, 0, await clock.time())
  if (error) throw error
}

/** See `JobEngine.setLimits`. */
export async function setLimits(
  app: string,
  change: LimitChange,
  { revision, applications, jobs: { documents } }: SetLimitsParts,
): Promise<void> {
  const checked = checkInput(limitChangeSchema, change)
  if (!checked.success) {
    const problems = issueTexts(checked, 'limits')
    throw new StemworkError('INVALID_PARAMS', `Invalid limits. ${problems.join('; ')}.`)
  }
  await oneAtATime(app, documents, async () => {
    const application = await applications.getApplication(app)
    if (!application)
      throw new StemworkError('NOT_FOUND', `There is no application ${JSON.stringify(app)}. Create it first.`)
    const own = ownLimits(application)
    if (revision !== undefined && revision !== revisionOf(own))
      throw new StemworkError(
        'CONFLICT',
        'Somebody else has changed these limits. Look at them again, then change them.',
      )
    const changed = Object.entries({ ...own, ...checked.data })
    const { maxQueuedJobs, ...quota } = Object.fromEntries(
      changed.filter(([, value]) => value !== null && value !== undefined),
    ) as Limits
    await applications.putApplication({ ...application, quota, maxQueuedJobs })
  })
}

interface SetLimitsParts {
  revision?: string
  applications: ApplicationStore
  jobs: Pick<JobStore, 'documents'>
}

function revisionOf(own: Limits): string {
  const figures = Object.entries(own).sort(([one], [other]) => (one < other ? -1 : 1))
  return hash('sha256', JSON.stringify(figures)).slice(0, 16)
}

/** A change that takes longer has lost its process and never ends. */
const longestChangeMs = 10_000
const lookAgainMs = 50

/**
 * Locks the limits of an application against changes by other processes. The lock is a document, because application
 * stores have no conditional writes.
 */
async function oneAtATime(app: string, documents: DocumentStore, work: () => Promise<void>): Promise<void> {
  const lock = { kind: 'limits-change', key: app }
  let startedAt = 0
  const isFirst = () => {
    startedAt = performance.now()
    return documents.put({ ...lock, value: {}, ttlMs: longestChangeMs }, { version: 0 })
  }
  for (let waitedMs = 0; (await isFirst()) === undefined; waitedMs += lookAgainMs) {
    if (waitedMs > longestChangeMs)
      throw new StemworkError('CONFLICT', 'These limits are being changed by others. Try again.', { retryable: true })
    await delay(lookAgainMs)
  }
  try {
    await work()
  } finally {
    // Later, it may be the lock of another process.
    if (performance.now() - startedAt < longestChangeMs) await documents.delete(lock.kind, lock.key)
  }
}

function limitsForAll({ limits, quota }: EngineOptions): Limits {
  return { ...quota, maxQueuedJobs: limits.maxQueuedJobs }
}

const address = { kind: 'limits', key: 'deployment' }
/** Longer than any deployment lives. */
const ttlMs = 20 * 365 * 24 * 60 * 60 * 1000

/**
 * The limits for all applications, from the options of the programs that accept jobs. They are also stored, so that
 * `stemwork jobs retry` follows them.
 *
 * @returns a function that stores them once. It never throws: a failure is logged, and the next call tries again.
 */
export function deploymentLimits(parts: Pick<SharedParts, 'jobs' | 'options' | 'logger'>) {
  const { documents } = parts.jobs
  let told: Promise<void> | undefined
  const tell = async () => {
    const value = limitsForAll(parts.options)
    const known = await documents.get(address.kind, address.key)
    if (!isDeepStrictEqual(known?.value, value)) await documents.put({ ...address, value, ttlMs })
  }
  return () =>
    (told ??= tell().catch((error: unknown) => {
      told = undefined
      parts.logger.warn({ err: error }, 'The limits of this deployment could not be stored for its tools.')
    }))
}

/** Limits and quota for an engine that uses a deployment's store without knowing its options. */
export async function storedLimits(documents: DocumentStore): Promise<Pick<EngineSettings, 'limits' | 'quota'>> {
  const known = limitsSchema.safeParse((await documents.get(address.kind, address.key))?.value)
  if (!known.success) return {}
  const { maxQueuedJobs, ...quota } = known.data
  return { limits: { maxQueuedJobs }, quota }
}
