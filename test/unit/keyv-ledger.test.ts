import { Keyv } from 'keyv'
import { expect, test } from 'vitest'
import { keyvJobs } from '../../src/adapters/stores/keyv/keyv-jobs.js'
import { withFaults } from '../../src/contract/faults.js'
import { sampleJob, succeed } from '../../src/contract/job-samples.js'

test('an end whose copy into the ledger of a Keyv store failed is copied before the ledger is read', async () => {
  const isPage = (call: { method: string; args: readonly unknown[] }) =>
    call.method === 'set' && String(call.args[0]).includes('ledger/')
  let isAway = true
  const store = withFaults(new Map(), (call) => (isAway && isPage(call) ? new Error('away') : undefined))
  const jobs = keyvJobs({ keyv: new Keyv({ store }) })
  const job = sampleJob({ id: '1' })
  await jobs.create(job)
  await jobs.claim({ id: '1', owner: 'w', leaseMs: 1000 })
  await expect(jobs.apply('1', succeed({ id: '1', token: 1 }))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  isAway = false
  const entries = await jobs.ledger?.entries({ fromDay: 0, toDay: 100_000, limit: 9 })
  expect(entries).toEqual([(await jobs.get('1'))?.settlement])
})
