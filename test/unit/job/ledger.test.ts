import { expect, test } from 'vitest'
import { sampleError, sampleJob } from '../../../src/contract/job-samples.js'
import {
  dayText,
  inOrder,
  type LedgerEntry,
  ledgerEntry,
  ledgerEntrySchema,
  ledgerGroups,
  totalsOf,
} from '../../../src/core/engine/job/ledger.js'

const day = 86_400_000
const first = 20_000

function entry(fields: Partial<LedgerEntry> = {}): LedgerEntry {
  const job = sampleJob({ id: 'j', app: 'a', workflow: 'w/a', status: 'SUCCEEDED', completedAt: first * day })
  return { ...ledgerEntry(job, { audioSeconds: 1.5, bytes: 10, processorSeconds: 2 }), ...fields }
}

test('an entry says how a job ended and what it used, 0 where nothing is known', () => {
  const job = sampleJob({ id: 'j', app: 'a', workflow: 'w/a', retries: 2, processorSeconds: 3, priority: 1 })
  const failed = { ...job, status: 'FAILED' as const, error: sampleError, completedAt: 7 }
  expect(ledgerEntrySchema.parse(ledgerEntry(failed))).toEqual({
    id: 'j/2',
    jobId: 'j',
    app: 'a',
    workflow: 'w/a',
    model: null,
    audioSeconds: 0,
    bytes: 0,
    processorSeconds: 3,
    priority: 1,
    result: 'FAILED',
    error: 'INTERNAL_ERROR',
    reason: null,
    runMs: null,
    endedAt: 7,
  })
  expect(ledgerEntrySchema.parse(entry())).toMatchObject({ result: 'SUCCEEDED', error: null, processorSeconds: 2 })
  expect(ledgerEntry(job).endedAt).toBe(0)
  expect(ledgerEntry({ ...failed, error: { ...sampleError, reason: 'no_audio' } }).reason).toBe('no_audio')
  const model = (details: Record<string, unknown>) => ledgerEntry(sampleJob({ details })).model
  expect([model({ model: { name: 'm' } }), model({ model: null }), model({ model: 'm' })]).toEqual(['m', null, null])
})

test('totals are of the days from the first to the last, both included, and of one application', () => {
  const entries = [-1, 0, 1, 2].map((n) => entry({ endedAt: (first + n) * day, bytes: 10 ** (n + 1) }))
  const total = (query: object) => totalsOf(entries, { fromDay: first, toDay: first + 1, ...query }, [])[0]
  expect(total({})).toEqual({ jobs: 2, succeeded: 2, audioSeconds: 3, bytes: 110, processorSeconds: 4 })
  expect(total({ app: 'a' })?.jobs).toBe(2)
  expect(total({ app: 'b' })).toBeUndefined()
  expect(totalsOf([entry({ result: 'FAILED' })], { fromDay: first, toDay: first }, [])).toMatchObject([
    { jobs: 1, succeeded: 0 },
  ])
})

test('totals are sorted by day, application and workflow, whatever they are grouped by', () => {
  expect(ledgerGroups).toEqual(['day', 'app', 'workflow'])
  const entries = ['b', 'a', 'c'].flatMap((app) =>
    [1, 0].flatMap((n) => ['w/b', 'w/a'].map((workflow) => entry({ app, workflow, endedAt: (first + n) * day }))),
  )
  const grouped = totalsOf(entries, { fromDay: first, toDay: first + 1 }, ledgerGroups)
  const keys = grouped.map((total) => `${total.day} ${total.app} ${total.workflow}`)
  expect(keys).toEqual(keys.toSorted())
  expect(keys).toHaveLength(12)
  const ofApps = totalsOf(entries, { fromDay: first, toDay: first + 1 }, ['app'])
  expect(ofApps.map(({ app, jobs }) => [app, jobs])).toEqual([
    ['a', 4],
    ['b', 4],
    ['c', 4],
  ])
  const sums = { jobs: 0, succeeded: 0, audioSeconds: 0, bytes: 0, processorSeconds: 0 }
  const [one, other] = [{ ...sums, app: 'a' }, sums]
  expect([inOrder([one, other]), inOrder([other, one])]).toEqual([
    [one, other],
    [other, one],
  ])
})

test('a day is written as its date', () => {
  expect(dayText(first)).toBe('2024-10-04')
})
