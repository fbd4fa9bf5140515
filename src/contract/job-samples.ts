import assert from 'node:assert/strict'
import type { JobError, JobOutput, JobRecord } from '../core/engine/job/job.js'
import { newJob } from '../core/engine/job/new-job.js'
import type { JobChange } from '../core/engine/job/transitions.js'
import type { JobStore } from '../core/engine/ports/job-store.js'
import { assertNone } from './broken-promise.js'
import { leaseMs } from './job-store-context.js'

/** A queued job as the engine would create it. */
export function sampleJob(fields: Partial<JobRecord> = {}): JobRecord {
  return {
    ...newJob({
      app: 'app-1',
      name: 'sample',
      workflow: 'service/sample',
      params: { inputUrl: 'https://example.com/song.mp3' },
      uploads: {},
      batchName: null,
      metadata: {},
      copyResultsTo: {},
      webhook: null,
      idempotency: null,
    }),
    ...fields,
  }
}

/** A job in which every field that a client fills is filled, with characters and values that storage tends to spoil. */
export function fullJob(fields: Partial<JobRecord> = {}): JobRecord {
  return sampleJob({
    name: 'Ünï 🎵 "quoted" \'single\' \\ back\nline\u2028',
    params: {
      inputUrl: 'https://example.com/a?b=c&d=%20',
      nested: { list: [1, 2.5, -0.001, 1e21, null, true, '', { deep: [] }] },
      empty: {},
      nothing: null,
      __proto_: 'x',
    },
    uploads: { inputUrl: 'uploads/app-1/ticket-1', second: 'uploads/app-1/ticket-2' },
    batchName: '',
    metadata: { 'key with space': 'välue', 'a.b': '$c', '%': '%_' },
    copyResultsTo: { vocals: 'https://example.com/put?X-Signature=a%2Fb' },
    webhook: { url: 'https://example.com/hook', events: ['job.succeeded'] },
    ...fields,
  })
}

export function withKey(key: string, fields: Partial<JobRecord> = {}): JobRecord {
  return sampleJob({ idempotency: { key, digest: 'd1' }, ...fields })
}

export const sampleError: JobError = {
  code: 'INTERNAL_ERROR',
  title: 'The service failed',
  message: 'It broke.',
  reason: null,
  retryable: true,
}

export const canceledError: JobError = {
  code: 'CANCELED',
  title: 'The job was canceled',
  message: 'The job was canceled on request.',
  reason: null,
  retryable: false,
}

export function sampleOutputs(jobId: string, token: number): Record<string, JobOutput> {
  return {
    vocals: {
      key: `results/${jobId}/${token}/vocals.wav`,
      bytes: 44,
      contentType: 'audio/wav',
      fileName: 'vocals.wav',
    },
  }
}

type Change<Kind extends JobChange['kind']> = Extract<JobChange, { kind: Kind }>

export const retentionMs = 60_000

/** A worker whose leases outlive a case. */
export const worker = { owner: 'worker', leaseMs: leaseMs * 100 }

/** Creates jobs with a name, each at another time. */
export function creator(store: JobStore, advance: (milliseconds: number) => Promise<void>) {
  return async (name: string, fields: Partial<JobRecord> = {}): Promise<string> => {
    const { job } = await store.create(sampleJob({ name, ...fields }))
    await advance(3)
    return job.id
  }
}

/** Returns the results of `count` simultaneous calls. */
export function together<Result>(count: number, call: (n: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => call(n)))
}

/** Returns the results of those of `count` simultaneous calls that the store accepted. */
export async function accepted<Result>(
  count: number,
  call: (n: number) => Promise<Result | undefined>,
): Promise<Result[]> {
  return (await together(count, call)).filter((result) => result !== undefined)
}

/** Names of the jobs that up to `most` claims get, in their order; stops at the first claim that gets none. */
export async function names(store: JobStore, most = Infinity, ms = worker.leaseMs): Promise<string[]> {
  const found: string[] = []
  while (found.length < most) {
    const job = await store.claim({ ...worker, leaseMs: ms })
    if (!job) break
    found.push(job.name ?? '')
  }
  return found
}

export function ids(jobs: readonly JobRecord[]): string[] {
  return jobs.map(({ id }) => id)
}

export function heartbeat(token: number, fields: Partial<Change<'heartbeat'>> = {}): Change<'heartbeat'> {
  return { kind: 'heartbeat', token, leaseMs: 1000, progress: 0.5, stage: 'working', ...fields }
}

export function succeed(
  job: Pick<JobRecord, 'id' | 'token'>,
  fields: Partial<Change<'succeed'>> = {},
): Change<'succeed'> {
  return {
    kind: 'succeed',
    token: job.token,
    outputs: sampleOutputs(job.id, job.token),
    details: { model: 'embedded' },
    retentionMs,
    messages: [],
    ...fields,
  }
}

export function fail(token: number, fields: Partial<Change<'fail'>> = {}): Change<'fail'> {
  return { kind: 'fail', token, error: sampleError, retentionMs, messages: [], ...fields }
}

export function requeue(token: number, fields: Partial<Change<'requeue'>> = {}): Change<'requeue'> {
  return { kind: 'requeue', token, delayMs: 0, onShutdown: false, ...fields }
}

export function preempt({ token, lease }: Pick<JobRecord, 'token' | 'lease'>): Change<'preempt'> {
  return { kind: 'preempt', token, nonce: lease?.nonce }
}

export function cancel(fields: Partial<Change<'cancel'>> = {}): Change<'cancel'> {
  return { kind: 'cancel', error: canceledError, retentionMs, messages: [], ...fields }
}

/** Claims a queued job. */
export async function claim(store: JobStore, id: string): Promise<JobRecord> {
  const running = await store.claim({ id, owner: 'worker', leaseMs })
  assert.ok(running, 'A claim of a queued job is granted.')
  return running
}

/** Creates a job and claims it. */
export async function claimed(store: JobStore, fields: Partial<JobRecord> = {}): Promise<JobRecord> {
  return claim(store, (await store.create(sampleJob(fields))).job.id)
}

/** Asserts that every change is refused and leaves the record as it is. */
export async function changesNothing(store: JobStore, job: JobRecord, changes: JobChange[]): Promise<void> {
  for (const change of changes) {
    assertNone(await store.apply(job.id, change), `${change.kind} does not apply to a job that is ${job.status}.`)
    assert.deepEqual(
      await store.get(job.id),
      job,
      `${change.kind}, which was not accepted, leaves the record as it is.`,
    )
  }
}

/** Compares jobs in the order of lists. */
export function newestFirst(a: JobRecord, b: JobRecord): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1)
}
