import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sqliteStores } from '../../../src/adapters/stores/sqlite/index.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { type JobQuery, matcherOf } from '../../../src/core/engine/ports/job-query.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobPage, JobStore } from '../../../src/core/engine/ports/job-store.js'
import { temporaryFolder } from '../../temporary-folder.js'
import { passesDuring } from './loop-passes.js'

const folder = temporaryFolder()
let stores: ReturnType<typeof sqliteStores>
let jobs: JobStore

const total = 5000
const nameOf = (n: number) => (n % 700 === 0 ? `rare ${n}` : `song ${n}`)
beforeAll(async () => {
  let time = 0
  stores = sqliteStores({ path: join(folder, 'jobs.db'), clock: () => ++time })
  jobs = stores.jobs
  const all = Array.from({ length: total }, (_, n) => ({ ...sampleJob(), app: 'many', name: nameOf(n), createdAt: n }))
  for (let n = 0; n < total; n += 500) await jobs.createAll(all.slice(n, n + 500))
  // A job of another application.
  await jobs.create({ ...sampleJob(), app: 'other', name: 'rare', createdAt: 100 })
})
afterAll(() => stores.close())

test('a search that finds little leaves the event loop to others between a thousand jobs and the next', async () => {
  const parts = total / 1000
  expect(await passesDuring(jobs.count({ app: 'many', search: 'nothing' }))).toBeGreaterThanOrEqual(parts)
  expect(await passesDuring(jobs.list({ app: 'many', search: 'nothing', limit: 8 }))).toBeGreaterThanOrEqual(parts)
})

test('pages and counts of a search are the same wherever its parts begin', async () => {
  const rare = Array.from({ length: total }, (_, n) => n).filter((n) => n % 700 === 0)
  const expected = rare.toReversed().map(nameOf)
  const query = { app: 'many', search: 'rare' }
  const names = async (page: { limit: number; offset?: number; after?: { createdAt: number; id: string } }) =>
    (await jobs.list({ ...query, ...page })).map(({ name }) => name)
  expect(await names({ limit: 100 })).toEqual(expected)
  for (let offset = 0; offset <= expected.length; offset++)
    expect(await names({ limit: 2, offset })).toEqual(expected.slice(offset, offset + 2))
  const last = (await jobs.list({ ...query, limit: 3 })).at(-1)!
  expect(await names({ limit: 3, after: last })).toEqual(expected.slice(3, 6))
  expect(await jobs.count(query)).toBe(expected.length)
  expect(await jobs.count(query, { max: 3 })).toBe(3)
  expect(await jobs.count({ search: 'rare' })).toBe(expected.length + 1)
})

describe('lists and counts of ended jobs for which no index has the order', () => {
  /** All jobs, newest first, in the store's order. */
  let all: JobRecord[]
  beforeAll(async () => {
    const made = Array.from({ length: 2600 }, (_, n) => ({
      ...sampleJob(),
      app: 'ended',
      workflow: n % 500 === 0 ? 'rare' : 'common',
      batchName: n % 2 === 0 ? 'batch' : null,
      status: n % 3 === 0 ? ('FAILED' as const) : ('SUCCEEDED' as const),
      completedAt: 10_000 + ((n * 7919) % 2600),
    }))
    for (let n = 0; n < made.length; n += 100) await jobs.createAll(made.slice(n, n + 100))
    all = await jobs.list({ app: 'ended', limit: made.length })
  })

  const everything = { completedAfter: 10_000 }
  test.each<[string, JobQuery]>([
    ['a span of ends and a workflow', { app: 'ended', ...everything, workflows: ['absent'] }],
    ['a batch and a workflow', { app: 'ended', batchName: 'batch', workflows: ['absent'] }],
    ['statuses and a batch, of all applications', { statuses: ['FAILED', 'SUCCEEDED'], batchName: 'absent' }],
    ['a workflow, of all applications', { workflows: ['absent'] }],
    ['a batch, of all applications', { batchName: 'absent' }],
  ])('leave the event loop to others: %s', async (_, query) => {
    expect(await passesDuring(jobs.list({ ...query, limit: 8 }))).toBeGreaterThanOrEqual(2)
  })

  test.each<[string, JobQuery]>([
    ['a long span', everything],
    ['a long span and a rare workflow', { ...everything, workflows: ['rare'] }],
    ['a long span, a batch and a status', { ...everything, batchName: 'batch', statuses: ['FAILED'] }],
    ['a short span and a workflow', { completedAfter: 11_000, completedBefore: 11_500, workflows: ['common'] }],
    ['a short span and a batch', { completedBefore: 10_100, batchName: 'batch' }],
    ['a batch and workflows', { batchName: 'batch', workflows: ['rare', 'absent'] }],
    ['a batch, workflows and a status', { batchName: 'batch', workflows: ['common'], statuses: ['FAILED'] }],
  ])('have the same jobs as one look at all: %s', async (_, filters) => {
    // Also between the times of creation, where stretches begin and end.
    const [createdBefore, createdAfter] = [all[200]!.createdAt, all[2300]!.createdAt]
    for (const query of [
      { app: 'ended', ...filters },
      { app: 'ended', ...filters, createdBefore, createdAfter },
    ])
      await haveSame(query)
  })

  async function haveSame(query: JobQuery): Promise<void> {
    const expected = all.filter(matcherOf(query)).map(({ id }) => id)
    const ids = async (page: Omit<JobPage, keyof JobQuery>) =>
      (await jobs.list({ ...query, ...page })).map(({ id }) => id)
    expect(await ids({ limit: 3000 })).toEqual(expected)
    expect(await ids({ limit: 5, offset: 3 })).toEqual(expected.slice(3, 8))
    const after = all.find(({ id }) => id === expected[4])
    expect(await ids({ limit: 5, after })).toEqual(after ? expected.slice(5, 10) : expected.slice(0, 5))
    expect(await jobs.count(query)).toBe(expected.length)
    expect(await jobs.count(query, { max: 6 })).toBe(Math.min(6, expected.length))
  }
})
