import { randomUUID } from 'node:crypto'
import { StemworkError, storeUnavailable } from '../errors.js'
import { isPending, withTryBegun, withTryDeferred, withTryEnded } from '../job/deliveries.js'
import { type Delivery, type JobRecord, type JobStatus, jobStatusSchema } from '../job/job.js'
import type { Quota } from '../job/quota.js'
import type { TraceContext } from '../job/trace-context.js'
import type { DocumentWrite } from '../ports/document-store.js'
import { inBatchSpan } from './batch-span.js'
import { documentBytes } from '../limits/document-bytes.js'
import type { Turn } from '../limits/rested.js'
import { readSlices } from '../queries/job-slices.js'
import type { MessageCarrier, MessageSender } from '../webhooks/message-sender.js'
import {
  type Batch,
  batchKey,
  batchKind,
  batchSchema,
  type BatchStatus,
  ended,
  isOpen,
  type JobOfBatch,
  newBatch,
  nextLookMs,
  reopened,
  type RepeatableRequest,
  withRequest,
} from './batch.js'
import { mostCounted } from '../ports/job-store.js'
import type { SharedParts } from '../engine-parts.js'

interface BatchPorts extends Pick<SharedParts, 'jobs' | 'clock' | 'options' | 'logger'> {
  sender: MessageSender
}

/** How often to check an open batch without an event: the process that ended its last job may have died. */
const lookAgainMs = 60_000
/** Most running jobs whose progress is averaged. */
const mostRunning = 100
const sweptAtOnce = 100
/** Delay of a message whose application has no free lane. */
const noLaneMs = 1000
/** More lost races than occur in practice. */
const mostTries = 20

/** Jobs to create as one batch. */
export interface NewBatch {
  app: string
  name: string
  webhook: { url: string } | null
  /** Hash of the idempotency key, and digest of the request, if it has a key. */
  request: RepeatableRequest | null
  jobs: readonly JobRecord[]
}

/**
 * Batches: one document each, written in one step with the added jobs, so that no end is announced before they exist.
 * Other content of the document is derived from the jobs and repaired from them, so changing a job never depends on it.
 * Writes are compare-and-set, so exactly one process announces the end.
 */
export class Batches {
  readonly #ports: BatchPorts

  constructor(ports: BatchPorts) {
    this.#ports = ports
  }

  /**
   * Creates all jobs or none, and returns them; `undefined` for a repeated request, whose jobs already exist.
   *
   * @throws StemworkError `IDEMPOTENCY_CONFLICT`; as `JobStore.createAll` does.
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
          const value = { ...(request ? withRequest(batch, request, now) : batch), trace }
          return store.createAll(traced, { ...limits, document: { ...this.#document(value, now), version } })
        })
        if (created) return created
      } catch (error) {
        if (!request || !StemworkError.is(error) || error.code !== 'ALREADY_EXISTS') throw error
        await this.#addRequest(batch, request, jobs)
        return undefined
      }
    }
    throw tooManyAtOnce()
  }

  /** Whether the request was made before. @throws StemworkError `IDEMPOTENCY_CONFLICT`. */
  async has(app: string, { name, request }: Pick<NewBatch, 'name' | 'request'>): Promise<boolean> {
    return request !== null && isMade((await this.#read(app, name))?.value, request)
  }

  /**
   * Handles existing jobs. A request with an idempotency key always yields the same job ids: another call, or a node of
   * version 0.1 that then stopped, created these; or the key was used for a batch with another name.
   */
  async #addRequest(batch: Batch, request: RepeatableRequest, jobs: NewBatch['jobs']): Promise<void> {
    const { app, name } = batch
    const isOfThis = isMade((await this.#read(app, name))?.value, request) || (await this.#firstName(jobs)) === name
    if (!isOfThis) throw conflict()
    await this.#change(app, name, async (found) =>
      isMade(found, request) ? undefined : withRequest(found ?? batch, request, await this.#ports.clock.time()),
    )
  }

  /** The batch name of the first of the jobs that still exists. */
  async #firstName(jobs: NewBatch['jobs']): Promise<string | null | undefined> {
    for (const { id } of jobs) {
      const job = await this.#ports.jobs.get(id)
      if (job) return job.batchName
    }
    return undefined
  }

  /** The state of the batch; `undefined` if there is neither a batch nor a job with that name. */
  async status(app: string, name: string, turn?: Turn): Promise<BatchStatus | undefined> {
    const [batch, counts] = await Promise.all([this.#read(app, name), this.#count(app, name)])
    const total = sumOf(counts)
    if (!batch && total === 0) return undefined
    const ofRunning = counts.STARTED > 0 ? await this.#meanProgress(app, name, turn) : 0
    const done = counts.SUCCEEDED + counts.FAILED + ofRunning * counts.STARTED
    return {
      name,
      app,
      total,
      counts,
      progress: total === 0 ? 1 : done / total,
      createdAt: batch?.value.createdAt ?? null,
      // Jobs that were submitted alone, or whose retry did not reach this record, count as open, too.
      endedAt: isOpen(counts) ? null : (batch?.value.endedAt ?? null),
    }
  }

  /** Mean progress of the batch's running jobs. */
  async #meanProgress(app: string, batchName: string, turn?: Turn): Promise<number> {
    const { jobs } = this.#ports
    let [sum, count] = [0, 0]
    const add = (running: JobRecord[]) => {
      for (const { progress } of running) sum += progress
      count += running.length
    }
    await readSlices(
      { app, batchName, statuses: ['STARTED'], limit: mostRunning },
      (page) => jobs.list(page),
      add,
      turn,
    )
    return sum / Math.max(1, count)
  }

  /**
   * Records the end of a batch whose jobs have all ended; the first process to notice puts the message into its outbox.
   * If a job ended after the recorded end, its process died before it could reopen the batch: the batch ends again.
   */
  async look({ app, batchName, completedAt }: JobOfBatch): Promise<void> {
    const { clock, jobs } = this.#ports
    await this.#change(app, batchName, async (batch) => {
      if (!batch || (batch.endedAt !== null && (completedAt ?? 0) <= batch.endedAt)) return undefined
      const open = await jobs.count({ app, batchName, statuses: ['QUEUED', 'STARTED'] }, { max: 1 })
      if (open > 0) return undefined
      // Counted only after all jobs have ended; a job that is retried meanwhile ends the batch later.
      const [counts, now] = [await this.#count(app, batchName), await clock.read()]
      if (isOpen(counts) || batch.addingUntil > now) return undefined
      const message = batch.webhook && { id: `msg_${randomUUID()}`, url: batch.webhook.url, event: 'batch.ended' }
      return ended(batch, { now, counts, message: message ?? undefined })
    })
  }

  /** Call when a job of the batch is queued again. */
  async reopen({ app, batchName }: JobOfBatch): Promise<void> {
    await this.#change(app, batchName, async (batch) => {
      if (!batch || batch.endedAt === null) return undefined
      // The job may have ended already.
      return isOpen(await this.#count(app, batchName)) ? reopened(batch) : undefined
    })
  }

  /** Checks the batches that are due: records missed ends and sends messages. Resolves with the number of messages. */
  async tend(): Promise<number> {
    const { clock, jobs, sender, logger } = this.#ports
    const tended = new Set<string>()
    const sending: Promise<number>[] = []
    for (;;) {
      const due = (await jobs.documents.due(batchKind, sweptAtOnce)).filter(({ key }) => !tended.has(key))
      if (due.length === 0 || sender.isClosed) break
      await clock.read()
      for (const { key, value } of due) {
        tended.add(key)
        try {
          sending.push(...(await this.#tendOne(batchSchema.parse(value))))
        } catch (error) {
          if (StemworkError.is(error)) throw error
          logger.error({ key, err: error }, 'The record of a batch cannot be read, so its webhook is not sent.')
        }
      }
    }
    const sent = await Promise.all(sending)
    return sent.reduce((sum, count) => sum + count, 0)
  }

  /** Handles one due batch. Resolves with the sends in flight, once the batch is no longer due. */
  async #tendOne({ app, name, endedAt }: Batch): Promise<Promise<number>[]> {
    if (endedAt === null) {
      await this.look({ app, batchName: name })
      // Rewritten so that it is due again later, if it is still open.
      await this.#change(app, name, (now) => (now?.endedAt === null ? now : undefined))
    }
    const sending: Promise<number>[] = []
    const batch = (await this.#read(app, name))?.value
    for (const delivery of batch?.deliveries ?? []) {
      const now = await this.#ports.clock.time()
      if (!batch || !isPending(delivery) || (delivery.nextAttemptAt ?? Infinity) > now) continue
      await new Promise<void>((resolve) => {
        const sent = this.#send(batch, delivery, resolve)
        sending.push(sent)
        void sent.then(() => resolve())
      })
    }
    return sending
  }

  /** Never rejects. */
  async #send({ app, name, trace }: Batch, delivery: Delivery, onWritten: () => void): Promise<number> {
    const { sender, logger } = this.#ports
    const carrier = this.#carrier(app, name, delivery)
    const message = { app, delivery, about: { batch: name }, trace }
    try {
      const sent = await sender.lanes.run(app, (laneSignal) => sender.send(message, carrier, { laneSignal, onWritten }))
      if (sent === undefined) await carrier.defer(noLaneMs)
      return sent ?? 0
    } catch (error) {
      logger.warn({ app, batch: name, err: error }, 'A webhook message could not be handled; it is due again later.')
      return 0
    }
  }

  #carrier(app: string, name: string, { id: deliveryId, attempts }: Delivery): MessageCarrier {
    const { clock } = this.#ports
    const change = (next: (batch: Batch, now: number) => Batch | undefined) =>
      this.#change(app, name, async (batch) => batch && next(batch, await clock.time()))
    return {
      begin: async (retryInMs) => {
        let begun: Batch | undefined
        await change((batch, now) => (begun = withTryBegun(batch, { deliveryId, attempts, retryInMs }, now)))
        if (!begun) return false
        const counts = begun.counts ?? (await this.#count(app, name))
        return { name, total: sumOf(counts), counts }
      },
      end: (outcome, status) => change((batch) => withTryEnded(batch, { deliveryId, outcome, status })),
      defer: (delayMs) => change((batch, now) => withTryDeferred(batch, { deliveryId, delayMs }, now)),
    }
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

  /** Approximate bytes of the records of an application's batches in the store. */
  bytes(app: string, turn?: Turn): Promise<number> {
    return documentBytes(this.#ports.jobs.documents, { kind: batchKind, prefix: `${app}/` }, turn)
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

/** Whether the jobs of the request exist. @throws StemworkError `IDEMPOTENCY_CONFLICT`. */
function isMade(batch: Batch | undefined, request: NewBatch['request']): boolean {
  const earlier = request && batch?.requests[request.key]
  if (earlier && earlier.digest !== request.digest) throw conflict()
  return earlier?.made === true
}

function sumOf(counts: NonNullable<Batch['counts']>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function tooManyAtOnce(): StemworkError {
  return storeUnavailable('A batch was changed by too many processes at once. Try again.', {
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
