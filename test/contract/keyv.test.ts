import { Keyv } from 'keyv'
import { describe, test } from 'vitest'
import { applicationStoreContract } from '../../src/contract/application-store.js'
import { jobStoreContract } from '../../src/contract/job-store.js'
import { randomSource } from '../../src/contract/random-source.js'
import { keyvApplications, keyvJobs } from '../../src/adapters/stores/keyv/index.js'
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
