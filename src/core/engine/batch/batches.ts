import { randomUUID } from 'node:crypto'
import { StemworkError } from '../errors.js'
import { isPending, withTryBegun, withTryEnded } from '../job/deliveries.js'
import { type Delivery, type JobRecord, type JobStatus, jobStatusSchema } from '../job/job.js'
import type { Quota } from '../job/quota.js'
import type { TraceContext } from '../job/trace-context.js'
import type { DocumentWrite } from '../ports/document-store.js'
import { type JobStore } from '../ports/job-store.js'
import { inBatchSpan } from './batch-span.js'
import { jittered, outcomeOf, type PostPorts, postMessage } from '../webhooks/post-message.js'
import {
  type Batch,
  batchKey,
  batchKind,
  batchSchema,
  type BatchStatus,
  ended,
  type JobOfBatch,
  nextLookMs,
  reopened,
} from './batch.js'
import { mostCounted } from '../job/most-counted.js'

export interface BatchPorts extends PostPorts {
  jobs: JobStore
}

/** How often to check an open batch without news: the process that ended its last job may have died. */
const lookAgainMs = 60_000
/** Running jobs whose progress is added up. */
const mostRunning = 100
const sweptAtOnce = 100
/** More lost races than can happen in practice. */
const mostTries = 20

/** Jobs to create as one batch. */
export interface NewBatch {
  app: string
  name: string
  webhook: { url: string } | null
  /** Hash and digest of the request, if it may be repeated. */
  request: { key: string; digest: string } | null
  jobs: readonly JobRecord[]
}

/**
 * Batches: one document each in the store, written in one step with the jobs that are added, so that no end is
 * announced before they exist. What else it tells is derived from the jobs and repaired from them, so changing a job
 * never depends on it. It changes by compare-and-set, so exactly one process announces the end.
 */
export class Batches {
  readonly #ports: BatchPorts
  readonly #closed = new AbortController()

  constructor(ports: BatchPorts) {
    this.#ports = ports
  }

  /**
   *    * Creates all jobs or none, and returns them; `undefined` for a repeated request, whose jobs already exist.
   *
   * @throws StemworkError `IDEMPOTENCY_CONFLICT`; as `JobStore.createAll`.
   */
  async add(
    { app, name, webhook, request, jobs }: NewBatch,
    { trace: parent, ...limits }: { maxQueued?: number; quota?: Quota; trace?: TraceContext },
  ): Promise<JobRecord[] | undefined> {
    const { clock, jobs: store, options } = this.#ports
    for (let tries = 0; tries < mostTries; tries++) {
      const known = await this.#read(app, name)
      if (isMade(known?.value, request)) return undefined
      const now = await clock.time()
      const batch: Batch = {
        ...(known ? reopened(known.value) : newBatch(app, name, now)),
        ...(webhook ? { webhook } : {}),
      }
      const version = known?.version ?? 0
      try {
        const created = await inBatchSpan(options.tracing, { app, name, jobs }, parent, (traced, trace) => {
          const value = { ...withRequest(batch, request), trace }
          return store.createAll(traced, { ...limits, document: { ...this.#document(value, now), version } })
        })
        if (created) return created
      } catch (error) {
        // A repeatable request gives its jobs the same IDs: another call, or a node of version 0.1 that then broke off,
        // has made them.
        if (!request || !StemworkError.is(error) || error.code !== 'ALREADY_EXISTS') throw error
        await this.#change(app, name, (found) =>
          isMade(found, request) ? undefined : withRequest(found ?? batch, request),
        )
        return undefined
      }
    }
    throw tooManyAtOnce()
  }

  /** The state of the batch; `undefined` if there are neither jobs with that name nor a batch. */
  async status(app: string, name: string): Promise<BatchStatus | undefined> {
    const { jobs } = this.#ports
    const [batch, running, counts] = await Promise.all([
      this.#read(app, name),
      jobs.list({ app, batchName: name, statuses: ['STARTED'], limit: mostRunning }),
      this.#count(app, name),
    ])
    const total = sumOf(counts)
    if (!batch && total === 0) return undefined
    const ofRunning = running.reduce((sum, { progress }) => sum + progress, 0) / Math.max(1, running.length)
    const done = counts.SUCCEEDED + counts.FAILED + ofRunning * counts.STARTED
    return {
      name,
      app,
      total,
      counts,
      progress: total === 0 ? 1 : done / total,
      createdAt: batch?.value.createdAt ?? null,
      endedAt: batch?.value.endedAt ?? null,
    }
  }

  /**
   * Records the end of a batch whose jobs have all ended; the first process to notice puts the message into its outbox.
   * A job that ended after the recorded end was added or retried by a process that then died: the batch ends again.
   */
  async look({ app, batchName, completedAt }: JobOfBatch): Promise<void> {
    const { clock } = this.#ports
    await this.#change(app, batchName, async (batch) => {
      if (!batch || (batch.endedAt !== null && (completedAt ?? 0) <= batch.endedAt)) return undefined
      const counts = await this.#count(app, batchName)
      // Not before the counts: it is later than the end of each job.
      const now = await clock.read()
      if (counts.QUEUED + counts.STARTED > 0 || batch.addingUntil > now) return undefined
      const message = batch.webhook && { id: `msg_${randomUUID()}`, url: batch.webhook.url, event: 'batch.ended' }
      return ended(batch, { now, counts, message: message ?? undefined })
    })
  }

  /** One of its jobs waits again. */
  async reopen({ app, batchName }: JobOfBatch): Promise<void> {
    await this.#change(app, batchName, async (batch) => {
      if (!batch || batch.endedAt === null) return undefined
      // It may have ended already.
      const { QUEUED, STARTED } = await this.#count(app, batchName)
      return QUEUED + STARTED > 0 ? reopened(batch) : undefined
    })
  }

  /** Checks the batches that are due: records missed ends and sends messages. Resolves with the number of messages. */
  async tend(): Promise<number> {
    let sent = 0
    const { documents } = this.#ports.jobs
    const found = await documents.due(batchKind, sweptAtOnce)
    if (found.length > 0) await this.#ports.clock.read()
    for (const { value } of found) {
      if (this.#closed.signal.aborted) break
      const batch = batchSchema.parse(value)
      const scope = { app: batch.app, batchName: batch.name }
      if (batch.endedAt === null) {
        await this.look(scope)
        // Due again later, if it is still open.
        await this.#change(batch.app, batch.name, (now) => (now?.endedAt === null ? now : undefined))
      }
      for (const delivery of (await this.#read(batch.app, batch.name))?.value.deliveries ?? [])
        if (
          isPending(delivery) &&
          (delivery.nextAttemptAt ?? Infinity) <= (await this.#ports.clock.time()) &&
          (await this.#send(batch, delivery))
        )
          sent++
    }
    await documents.removeExpired(sweptAtOnce)
    return sent
  }

  close(): void {
    this.#closed.abort()
  }

  /** Claims the next attempt, so that only one process makes it, and makes it. */
  async #send({ app, name, trace }: Batch, { id, attempts }: Delivery): Promise<boolean> {
    const { clock, options } = this.#ports
    const nextDelayMs = options.webhooks.retryDelaysMs[attempts]
    let taken: Delivery | undefined
    let counts: Batch['counts']
    await this.#change(app, name, async (batch) => {
      const retryInMs = nextDelayMs === undefined ? null : jittered(nextDelayMs)
      const next = batch && withTryBegun(batch, { deliveryId: id, attempts, retryInMs }, await clock.time())
      taken = next?.deliveries.find((delivery) => delivery.id === id)
      counts = batch?.counts
      return next
    })
    if (!taken) return false
    counts ??= await this.#count(app, name)
    const data = { name, total: sumOf(counts), counts }
    const answered = await postMessage(
      { app, delivery: taken, data, about: { batch: name }, trace },
      this.#ports,
      this.#closed.signal,
    )
    const outcome = outcomeOf(answered, nextDelayMs === undefined)
    await this.#change(
      app,
      name,
      (batch) => batch && withTryEnded(batch, { deliveryId: id, outcome, status: answered }),
    )
    if (outcome === 'given_up')
      this.#ports.logger.warn(
        { app, batch: name, status: answered },
        'A webhook message was given up after its last attempt.',
      )
    return true
  }

  /** The jobs by status, each counted up to 10,000. */
  async #count(app: string, batchName: string): Promise<Record<JobStatus, number>> {
    const { jobs } = this.#ports
    const counted = await Promise.all(
      jobStatusSchema.options.map(async (status) => [
        status,
        await jobs.count({ app, batchName, statuses: [status] }, { max: mostCounted }),
      ]),
    )
    return Object.fromEntries(counted) as Record<JobStatus, number>
  }

  #document(batch: Batch, now: number): DocumentWrite {
    return {
      kind: batchKind,
      key: batchKey(batch.app, batch.name),
      value: batch,
      ttlMs: this.#ports.options.retention.jobsMs,
      dueInMs: nextLookMs(batch, now, lookAgainMs),
    }
  }

  async #read(app: string, name: string): Promise<{ version: number; value: Batch } | undefined> {
    const found = await this.#ports.jobs.documents.get(batchKind, batchKey(app, name))
    return found && { version: found.version, value: batchSchema.parse(found.value) }
  }

  /** Replaces the batch by the result of `next`, and repeats this after a lost race; `undefined` writes nothing. */
  async #change(
    app: string,
    name: string,
    next: (batch: Batch | undefined) => Batch | undefined | Promise<Batch | undefined>,
  ): Promise<void> {
    const { clock, jobs } = this.#ports
    const { documents } = jobs
    for (let tries = 0; tries < mostTries; tries++) {
      const known = await this.#read(app, name)
      const batch = await next(known?.value)
      if (!batch) return
      const version = known?.version ?? 0
      const written = await documents.put(this.#document(batch, await clock.time()), { version })
      if (written !== undefined) return
    }
    throw tooManyAtOnce()
  }
}

function newBatch(app: string, name: string, createdAt: number): Batch {
  return { app, name, createdAt, webhook: null, endedAt: null, addingUntil: 0, requests: {}, deliveries: [] }
}

/** Whether the jobs of the request exist. @throws StemworkError `IDEMPOTENCY_CONFLICT`. */
function isMade(batch: Batch | undefined, request: NewBatch['request']): boolean {
  const earlier = request && batch?.requests[request.key]
  if (earlier && earlier.digest !== request.digest) throw conflict()
  return earlier?.made === true
}

function withRequest(batch: Batch, request: NewBatch['request']): Batch {
  if (!request) return batch
  return { ...batch, requests: { ...batch.requests, [request.key]: { digest: request.digest, made: true } } }
}

function sumOf(counts: NonNullable<Batch['counts']>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function tooManyAtOnce(): StemworkError {
  return new StemworkError('STORE_UNAVAILABLE', 'A batch was changed by too many processes at once. Try again.', {
    retryable: true,
  })
}

function conflict(): StemworkError {
  return new StemworkError(
    'IDEMPOTENCY_CONFLICT',
    'This idempotency key was used for another batch. Use a new key for a new batch, or repeat the first request ' +
      'unchanged.',
  )
}
