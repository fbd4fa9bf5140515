import { randomUUID } from 'node:crypto'
import { StemworkError } from '../errors.js'
import { isPending, withTryBegun, withTryEnded } from '../job/deliveries.js'
import { type Delivery, type JobRecord, type JobStatus, jobStatusSchema } from '../job/job.js'
import type { Quota } from '../job/quota.js'
import type { TraceContext } from '../job/trace-context.js'
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
} from './batch.js'
import { mostCounted } from '../job/most-counted.js'

export interface BatchPorts extends PostPorts {
  jobs: JobStore
}

/** How often to check an open batch without news: the process that ended its last job may have died. */
const lookAgainMs = 60_000
/** Longest time to create the jobs of a request. */
const addingMs = 60_000
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
 * Batches: one document each in the store. It is derived from the jobs and repaired from them, so writing a job never
 * depends on it. It changes by compare-and-set, so exactly one process announces the end.
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
    let isRepeated = false
    await this.#change(app, name, (known) => {
      const earlier = request && known?.requests[request.key]
      if (earlier && earlier.digest !== request.digest) throw conflict()
      if ((isRepeated = earlier?.made === true)) return undefined
      const now = Date.now()
      const batch = known ?? {
        app,
        name,
        createdAt: now,
        webhook: null,
        endedAt: null,
        addingUntil: 0,
        requests: {},
        deliveries: [],
      }
      return {
        ...batch,
        webhook: webhook ?? batch.webhook,
        endedAt: null,
        addingUntil: now + addingMs,
        requests: request
          ? { ...batch.requests, [request.key]: { digest: request.digest, made: false } }
          : batch.requests,
      }
    })
    if (isRepeated) return undefined
    let created: JobRecord[] | undefined
    let trace: TraceContext | null = null
    let failure: { error: unknown } | undefined
    try {
      created = await inBatchSpan(this.#ports.options.tracing, { app, name, jobs }, parent, (traced, context) => {
        trace = context
        return this.#ports.jobs.createAll(traced, limits)
      })
    } catch (error) {
      // A repeatable request gives its jobs the same IDs: an earlier one created them and then broke off.
      if (!request || !StemworkError.is(error) || error.code !== 'ALREADY_EXISTS') failure = { error }
    }
    await this.#change(app, name, (batch) => {
      if (!batch) return undefined
      const { [request?.key ?? '']: _, ...others } = batch.requests
      const requests =
        request && failure === undefined ? { ...others, [request.key]: { digest: request.digest, made: true } } : others
      return { ...batch, addingUntil: 0, requests, trace: failure ? batch.trace : trace }
    })
    if (failure) {
      // It ends again, if it had ended before.
      await this.look({ app, batchName: name })
      throw failure.error
    }
    return created
  }

  /** The state of the batch; `undefined` if there are neither jobs with that name nor a batch. */
  async status(app: string, name: string): Promise<BatchStatus | undefined> {
    const { jobs } = this.#ports
    const [batch, running, ...counted] = await Promise.all([
      this.#read(app, name),
      jobs.list({ app, batchName: name, statuses: ['STARTED'], limit: mostRunning }),
      ...jobStatusSchema.options.map((status) =>
        jobs.count({ app, batchName: name, statuses: [status] }, { max: mostCounted }),
      ),
    ])
    const counts = Object.fromEntries(
      jobStatusSchema.options.map((status, index) => [status, counted[index] ?? 0]),
    ) as Record<JobStatus, number>
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
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
   */
  async look({ app, batchName }: JobOfBatch): Promise<void> {
    const { jobs } = this.#ports
    await this.#change(app, batchName, async (batch) => {
      if (!batch || batch.endedAt !== null || batch.addingUntil > Date.now()) return undefined
      const open = await jobs.count({ app, batchName, statuses: ['QUEUED', 'STARTED'] }, { max: 1 })
      if (open > 0) return undefined
      const message = batch.webhook && { id: `msg_${randomUUID()}`, url: batch.webhook.url, event: 'batch.ended' }
      return ended(batch, Date.now(), message ?? undefined)
    })
  }

  /** One of its jobs waits again. */
  async reopen({ app, batchName }: JobOfBatch): Promise<void> {
    await this.#change(app, batchName, (batch) =>
      batch && batch.endedAt !== null ? { ...batch, endedAt: null } : undefined,
    )
  }

  /** Checks the batches that are due: records missed ends and sends messages. Resolves with the number of messages. */
  async tend(): Promise<number> {
    let sent = 0
    const { documents } = this.#ports.jobs
    for (const { value } of await documents.due(batchKind, sweptAtOnce)) {
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
          (delivery.nextAttemptAt ?? Infinity) <= Date.now() &&
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
    const { retryDelaysMs } = this.#ports.options.webhooks
    const nextDelayMs = retryDelaysMs[attempts]
    let taken: Delivery | undefined
    await this.#change(app, name, (batch) => {
      const retryInMs = nextDelayMs === undefined ? null : jittered(nextDelayMs)
      const next = batch && withTryBegun(batch, { deliveryId: id, attempts, retryInMs }, Date.now())
      taken = next?.deliveries.find((delivery) => delivery.id === id)
      return next
    })
    if (!taken) return false
    const status = await this.status(app, name)
    const data = { name, total: status?.total ?? 0, counts: status?.counts ?? {} }
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
    const { documents } = this.#ports.jobs
    for (let tries = 0; tries < mostTries; tries++) {
      const known = await this.#read(app, name)
      const batch = await next(known?.value)
      if (!batch) return
      const written = await documents.put(
        {
          kind: batchKind,
          key: batchKey(app, name),
          value: batch,
          ttlMs: this.#ports.options.retention.jobsMs,
          dueInMs: nextLookMs(batch, Date.now(), lookAgainMs),
        },
        { version: known?.version ?? 0 },
      )
      if (written !== undefined) return
    }
    throw new StemworkError('STORE_UNAVAILABLE', 'A batch was changed by too many processes at once. Try again.', {
      retryable: true,
    })
  }
}

function conflict(): StemworkError {
  return new StemworkError(
    'IDEMPOTENCY_CONFLICT',
    'This idempotency key was used for another batch. Use a new key for a new batch, or repeat the first request ' +
      'unchanged.',
  )
}
