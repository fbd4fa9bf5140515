import { Keyv } from 'keyv'
import { describe, expect, test } from 'vitest'
import { applicationStoreContract } from '../../../src/contract/application-store.js'
import { jobStoreContract } from '../../../src/contract/job-store/job-store.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { randomSource } from '../../../src/contract/random-source.js'
import { keyvApplications } from '../../../src/adapters/stores/keyv/keyv-applications.js'
import { keyvJobs } from '../../../src/adapters/stores/keyv/keyv-jobs.js'
import { DelayingMap } from './delaying-map.js'
import { settableClock } from './settable-clock.js'

const backends = {
  'a Map': () => new Keyv(),
  'a backend of random delays': () => new Keyv({ store: new DelayingMap(randomSource(7), 3) }),
}

for (const [name, open] of Object.entries(backends)) {
  describe(`keyvJobs on ${name}`, () => {
    jobStoreContract(
      { describe, test },
      {
        async open({ idempotencyMs }) {
          const { clock, advance } = settableClock()
          const keyv = open()
          return {
            store: keyvJobs({ keyv, clock, idempotencyMs }),
            advance,
            damage: async (id) => void (await keyv.set(`stemwork/job/${id}`, '{}')),
            async close() {},
          }
        },
      },
    )
  })

  describe(`keyvApplications on ${name}`, () => {
    applicationStoreContract(
      { describe, test },
      { open: async () => ({ store: keyvApplications({ keyv: open() }), async close() {} }) },
    )
  })
}

/** A backend that prefixes each key with the namespace itself, as @keyv/redis and the database adapters do. */
class PrefixingBackend {
  namespace: string | undefined
  opts = {}
  readonly entries = new Map<string, unknown>()
  get = async (key: string) => this.entries.get(`${this.namespace}::${key}`)
  set = async (key: string, value: unknown) => void this.entries.set(`${this.namespace}::${key}`, value)
  delete = async (key: string) => this.entries.delete(`${this.namespace}::${key}`)
  clear = async () => this.entries.clear()
  on = () => this
}

describe('one backend under two namespaces', () => {
  const keyvOver = (store: PrefixingBackend, namespace: string) => new Keyv({ store, namespace, useKeyPrefix: false })
  const refusal = {
    code: 'INVALID_OPTIONS',
    message: expect.stringMatching(/"jobs" and "(applications|other)".*its own backend/),
  }

  test('is refused when the second store is made', () => {
    const store = new PrefixingBackend()
    keyvJobs({ keyv: keyvOver(store, 'jobs') })
    expect(() => keyvApplications({ keyv: keyvOver(store, 'applications') })).toThrow(expect.objectContaining(refusal))
  })

  test('is refused even if both instances are created before the stores', () => {
    const store = new PrefixingBackend()
    const jobs = keyvOver(store, 'jobs')
    const applications = keyvOver(store, 'applications')
    expect(() => {
      keyvJobs({ keyv: jobs })
      keyvApplications({ keyv: applications })
    }).toThrow(expect.objectContaining(refusal))
  })

  test('is noticed before anything is read or written, even if the other instance is not our store', async () => {
    const store = new PrefixingBackend()
    const jobs = keyvJobs({ keyv: keyvOver(store, 'jobs') })
    await jobs.create(sampleJob())
    const before = [...store.entries.keys()]
    keyvOver(store, 'other')
    await expect(jobs.create(sampleJob())).rejects.toMatchObject(refusal)
    expect([...store.entries.keys()]).toEqual(before)
  })

  test('is not reported for one instance shared by both stores, or for two backends', async () => {
    const keyv = keyvOver(new PrefixingBackend(), 'stemwork')
    await keyvJobs({ keyv }).count({})
    await keyvApplications({ keyv }).listApplications()
    await keyvJobs({ keyv: keyvOver(new PrefixingBackend(), 'jobs') }).count({})
    await keyvApplications({ keyv: keyvOver(new PrefixingBackend(), 'applications') }).listApplications()
  })
})
