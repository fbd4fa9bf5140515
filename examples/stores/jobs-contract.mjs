// jobs-contract.mjs: does the store keep the promises of its port? node --test jobs-contract.mjs
import assert from 'node:assert/strict'
import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newJob } from 'stemwork/adapter'
import { jobStoreContract } from 'stemwork/contract'
import { fileJobs } from './jobs.mjs'

jobStoreContract(
  { describe, test },
  {
    async open({ idempotencyMs }) {
      const folder = await mkdtemp(join(tmpdir(), 'jobs-'))
      const path = join(folder, 'journal')
      // A clock that the suite advances, so that it does not have to wait.
      let now = Date.now()
      const openStore = () => fileJobs({ path, clock: () => now, idempotencyMs })
      let opened = await openStore()
      return {
        // The store that is open now: a record is damaged while the file is closed.
        store: new Proxy(opened.jobs, { get: (_, name) => Reflect.get(opened.jobs, name) }),
        advance: (milliseconds) => void (now += milliseconds),
        async damage(id) {
          await opened.close()
          await appendFile(path, `${JSON.stringify([[`job/${id}`, 'no record']])}\n`)
          opened = await openStore()
        },
        close: () => opened.close().then(() => rm(folder, { recursive: true })),
      }
    },
  },
)

void test('an acknowledged change survives a crash, and an unfinished line is ignored', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'jobs-'))
  const path = join(folder, 'journal')
  const { jobs, close } = await fileJobs({ path })
  const request = { app: 'me', name: null, workflow: 'w', params: {}, uploads: {}, batchName: null, metadata: {} }
  const { job } = await jobs.create(newJob({ ...request, copyResultsTo: {}, webhook: null, idempotency: null }))
  const claimed = await jobs.claim({ owner: 'worker', leaseMs: 60_000 })
  await close()
  await appendFile(path, `[["job/${job.id}",{"id":`)
  const reopened = await fileJobs({ path })
  assert.deepEqual(await reopened.jobs.get(job.id), claimed)
  await reopened.close()
  await rm(folder, { recursive: true })
})
