import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import type { SqliteStores } from '../../../src/adapters/stores/sqlite/index.js'
import { temporaryFolder } from '../../temporary-folder.js'

// A real disk cannot be slowed or broken in tests, so the one call that waits for it is held up or fails instead.
const { fdatasync } = fs
let held: (() => void)[] | undefined
let failure: NodeJS.ErrnoException | null = null
let syncs = 0

const directory = temporaryFolder()
let stores: SqliteStores

beforeAll(async () => {
  const slow = (descriptor: number, done: (error: NodeJS.ErrnoException | null) => void) => {
    syncs++
    const sync = () => (failure ? done(failure) : fdatasync(descriptor, done))
    if (held) held.push(sync)
    else sync()
  }
  Object.assign(fs, { fdatasync: slow })
  syncBuiltinESMExports()
  const { sqliteStores } = await import('../../../src/adapters/stores/sqlite/index.js')
  stores = sqliteStores({ path: join(directory, 'jobs.db') })
})
afterAll(async () => {
  stores.close()
  Object.assign(fs, { fdatasync })
  syncBuiltinESMExports()
})

test('a busy disk holds up only calls whose write has to be durable', async () => {
  const { jobs } = stores
  held = []
  let answered = 0
  const first = jobs.create(sampleJob({ id: 'first' })).then(() => answered++)
  while (held.length === 0) await turn()
  const others = ['second', 'third', 'fourth'].map((id) => jobs.create(sampleJob({ id })).then(() => answered++))
  await turn()

  // Reads, claims and heartbeats continue.
  expect(await jobs.get('second')).toMatchObject({ id: 'second' })
  const claimed = await jobs.claim({ owner: 'w', leaseMs: 60_000 })
  expect(claimed).toMatchObject({ id: 'first', status: 'STARTED' })
  expect(answered).toBe(0)

  const before = syncs
  const [sync] = held
  held = undefined
  sync?.()
  await Promise.all([first, ...others])
  // The sync under way did not cover the three later writes, which shared the next sync.
  expect(syncs - before).toBe(1)
})

test('a write that the disk refuses is reported, and later ones are tried again', async () => {
  failure = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })
  await expect(stores.jobs.create(sampleJob({ id: 'unlucky' }))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  failure = null
  await expect(stores.jobs.create(sampleJob({ id: 'lucky' }))).resolves.toMatchObject({ created: true })
})

test('a write after a failed sync survives a power cut, whatever the system has dropped', async () => {
  const log = join(directory, 'jobs.db-wal')
  failure = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })
  await expect(stores.jobs.create(sampleJob({ id: 'dropped' }))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  failure = null
  const dropped = fs.readFileSync(log)
  await stores.jobs.create(sampleJob({ id: 'kept' }))

  const after = fs.readFileSync(log)
  // Nothing of the log that has stayed as it was at the failed sync is on the disk.
  const same = after.findIndex((byte, at) => byte !== dropped[at])
  after.fill(0, 0, same === -1 ? after.length : same)
  const disk = join(directory, 'disk.db')
  fs.copyFileSync(join(directory, 'jobs.db'), disk)
  fs.writeFileSync(`${disk}-wal`, after)
  const { sqliteStores } = await import('../../../src/adapters/stores/sqlite/index.js')
  const found = sqliteStores({ path: disk })
  onTestFinished(() => found.close())
  expect(await found.jobs.get('kept')).toMatchObject({ id: 'kept' })
})

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
