import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { temporaryFolder } from '../temporary-folder.js'
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
  // Not the application's.
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
