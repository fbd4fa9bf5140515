import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type SqliteStores, sqliteStores } from '../../../src/adapters/stores/sqlite/index.js'
import { sampleJob, worker } from '../../../src/contract/job-samples.js'
import { passesDuring } from './loop-passes.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const folder = folderOfEachTest()
let stores: SqliteStores

const open = () => (stores = sqliteStores({ path: join(folder, 'jobs.db') }))
const many = (count: number, fields = {}) => Array.from({ length: count }, () => sampleJob({ app: 'a', ...fields }))

/** Resolves once the first jobs of a batch have rows, and the other jobs none. */
async function begun(): Promise<void> {
  while (!(await stores.jobs.claim(worker))) await new Promise((resolve) => setImmediate(resolve))
}

beforeEach(() => void open())
afterEach(() => stores.close())

test('a batch of 1,000 leaves the event loop to others between twenty jobs and the next', async () => {
  expect(await passesDuring(stores.jobs.createAll(many(1000)))).toBeGreaterThanOrEqual(1000 / 20)
  expect(await stores.jobs.count({ app: 'a' })).toBe(1000)
})

test('lists, counts and more jobs of its application wait until a batch is whole; those of others do not', async () => {
  const { jobs } = stores
  const { job } = await jobs.create(sampleJob({ app: 'b', notBefore: Date.now() + 60_000 }))
  const ended: string[] = []
  const all = many(300)
  const creating = jobs.createAll(all).then((made) => {
    ended.push('created')
    return made
  })
  await begun()
  const others = jobs.list({ app: 'b', limit: 10 }).then((found) => {
    ended.push('list of another')
    return found
  })
  const found = await Promise.all([
    jobs.list({ app: 'a', limit: 1000 }),
    jobs.list({ limit: 1000 }),
    jobs.count({ app: 'a', statuses: ['QUEUED'] }),
    jobs.create(sampleJob({ app: 'a' }), { maxQueued: 299 }).catch((error: Error) => error.message),
    jobs.get(all.at(-1)!.id),
    creating,
  ])
  expect((await others).map(({ id }) => id)).toEqual([job.id])
  expect(ended).toEqual(['list of another', 'created'])
  expect(found[0]?.length).toBe(300)
  expect(found[1]?.length).toBe(301)
  expect(found[2]).toBe(299)
  expect(found[3]).toMatch(/may wait: the limit is 299/)
  expect(found[4]?.id).toBe(all.at(-1)!.id)
  expect(found[5]?.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
  expect(found[5]?.at(-1)).toEqual(await jobs.get(all.at(-1)!.id))
})

test('no job of a batch that is being made is overwritten, and none is created twice', async () => {
  const { jobs } = stores
  const all = many(100)
  const creating = jobs.createAll(all)
  await begun()
  const again = { ...sampleJob({ app: 'b' }), id: all.at(-1)!.id }
  await expect(jobs.create(again)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
  await expect(jobs.createAll([...many(50, { app: 'b' }), again])).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
  await creating
  await expect(jobs.createAll([...many(50), all[0]!])).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
  const twice = many(50)
  await expect(jobs.createAll([...twice, twice[0]!])).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
  expect(await jobs.count({})).toBe(100)
})

test('a batch whose store is closed before it is whole is whole when the store is opened again', async () => {
  const creating = stores.jobs.createAll(many(300))
  await begun()
  stores.close()
  await expect(creating).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  open()
  expect(await stores.jobs.count({ app: 'a' })).toBe(300)
  expect(await stores.jobs.count({ app: 'a', statuses: ['QUEUED'] })).toBe(299)
})
