import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { sampleError, sampleJob } from '../../../src/contract/job-samples.js'
import { attemptLog } from '../../../src/core/engine/dispatch/attempt/attempt-log.js'
import { settlement } from '../../../src/core/engine/dispatch/attempt/settlement.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobChange } from '../../../src/core/engine/job/transitions.js'
import { recordingLogger } from '../../engine/harness.js'

const now = 1_700_000_000_000
const job = sampleJob({ id: 'job', token: 3, lease: { owner: 'me', token: 3, nonce: 'n', until: 1 } })
const ofKind = (kind: JobChange['kind'], fields: object = {}) => ({ kind, ...fields }) as JobChange

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now }))
afterEach(() => void vi.useRealTimers())

/** Events in order when this change is answered with this record. */
async function settle(
  change: JobChange | undefined,
  written: Partial<JobRecord> | undefined,
  { hasStages = false, removal }: { hasStages?: boolean; removal?: Error } = {},
) {
  const calls: unknown[][] = []
  const { logger, lines } = recordingLogger()
  const note = (...call: unknown[]) => void calls.push(call)
  const record = written && { ...job, ...written }
  const parts = {
    jobs: {
      async apply(id: string, applied: JobChange) {
        const messages = 'messages' in applied ? applied.messages?.map(({ event }) => event) : undefined
        note('apply', id, applied.kind, ...(messages?.length ? [messages] : []))
        return applied.kind === 'cancel' ? undefined : record
      },
    },
    options: { retention: { failedInputsMs: 1000 } },
    blobs: {
      async deletePrefix(prefix: string) {
        note('deletePrefix', prefix)
        if (removal) throw removal
      },
    },
    events: { announce: (name: string, event: { job: JobRecord }) => note(name, event.job === record) },
    onEnd: (ended: JobRecord) => note('onEnd', ended === record),
    waking: { wake: async (jobs: JobRecord[], options: object) => note('wake', jobs[0] === record, options) },
  }
  const attempt = {
    job,
    checkpoint: { discard: async () => note('discard') },
    stages: hasStages ? { end: (write: () => unknown) => (note('end'), write()) } : undefined,
    outageMs: () => 0,
    answeredAt: () => 0,
    log: attemptLog(logger, job),
  }
  const { settle } = settlement(...([parts, attempt] as unknown as Parameters<typeof settlement>))
  expect(await settle(change)).toBe(record)
  return { calls, lines }
}

const applied = (kind: string) => ['apply', 'job', kind]
const removed = ['deletePrefix', 'results/job/3-n/']

test.each<[string, JobChange, Partial<JobRecord>, unknown[][]]>([
  [
    'success ends it, without its checkpoint',
    ofKind('succeed'),
    { status: 'SUCCEEDED' },
    [['discard'], ['onEnd', true], ['job.succeeded', true]],
  ],
  [
    'failure of the service keeps its checkpoint',
    ofKind('fail'),
    { status: 'FAILED', error: sampleError },
    [
      ['onEnd', true],
      ['job.failed', true],
    ],
  ],
  [
    'failure that a retry repeats does not',
    ofKind('fail'),
    { status: 'FAILED', error: { ...sampleError, code: 'BAD_INPUT' } },
    [['discard'], ['onEnd', true], ['job.failed', true]],
  ],
  [
    'temporary failure queues it, and wakes a worker when it is due',
    ofKind('requeue', { delayMs: 500 }),
    { status: 'QUEUED' },
    [
      ['job.requeued', true],
      ['wake', true, { delayMs: 525 }],
    ],
  ],
  [
    'job that gave way is queued, and due at once',
    ofKind('preempt'),
    { status: 'QUEUED' },
    [
      ['job.requeued', true],
      ['job.preempted', true],
      ['wake', true, { delayMs: 0 }],
    ],
  ],
  ['record that still runs is left to whoever runs it', ofKind('step'), { status: 'STARTED' }, []],
  [
    'record that still runs is left to whoever runs it, even if it is to be canceled',
    ofKind('step'),
    { status: 'STARTED', cancelRequested: true },
    [],
  ],
])('a %s', async (_, change, written, then) => {
  expect((await settle(change, written)).calls).toEqual([applied(change.kind), ...then])
})

test.each([
  [now + 1000, 1025],
  [now - 1000, 25],
  [null, 25],
  [now + 1e12, 2 ** 31 - 1],
])('a worker is woken for a step that waits until %s after %i ms', async (dueAt, delayMs) => {
  const history = [{ token: 1, worker: 'w', startedAt: now, endedAt: now, outcome: 'suspended' as const, reason: null }]
  const { calls } = await settle(ofKind('suspend'), { status: 'QUEUED', dueAt, history })
  expect(calls.at(-1)).toEqual(['wake', true, { delayMs }])
})

test('a suspended job without a history waits until it is due', async () => {
  const { calls } = await settle(ofKind('suspend'), { status: 'QUEUED', dueAt: 700, history: [] })
  expect(calls.at(-1)).toEqual(['wake', true, { delayMs: 725 }])
})

test('a canceled job that was queued again ends here, with its message, unless it was claimed meanwhile', async () => {
  const webhook = { url: 'https://receiver.example/', events: null }
  const { calls } = await settle(ofKind('requeue', { delayMs: 0 }), {
    status: 'QUEUED',
    cancelRequested: true,
    webhook,
  })
  expect(calls).toEqual([
    applied('requeue'),
    [...applied('cancel'), ['job.failed']],
    ['job.requeued', true],
    ['wake', true, { delayMs: 25 }],
  ])
})

test('a lost claim leaves no files, and writes nothing', async () => {
  expect((await settle(undefined, undefined)).calls).toEqual([removed])
  expect((await settle(ofKind('succeed'), undefined)).calls).toEqual([applied('succeed'), removed])
})

test('files that cannot be removed are logged and left to the sweep', async () => {
  const { lines } = await settle(undefined, undefined, { removal: new Error('stuck') })
  expect(lines).toEqual([{ level: 'warn', fields: { jobId: 'job', token: 3, err: new Error('stuck') } }])
})

test('the slot of the run is free while its end is written', async () => {
  const { calls } = await settle(ofKind('step'), { status: 'STARTED' }, { hasStages: true })
  expect(calls).toEqual([['end'], applied('step')])
})
