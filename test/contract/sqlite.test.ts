import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { applicationStoreContract, jobStoreContract } from '../../src/contract/index.js'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { settableClock } from './settable-clock.js'

async function open(idempotencyMs?: number) {
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-sqlite-'))
  const { clock, advance } = settableClock()
  const stores = sqliteStores({ path: join(directory, 'jobs.db'), clock, idempotencyMs })
  return {
    stores,
    advance,
    async close() {
      stores.close()
      await rm(directory, { recursive: true })
    },
  }
}

describe('sqliteStores', () => {
  jobStoreContract(
    { describe, test },
    {
      async open({ idempotencyMs }) {
        const { stores, ...rest } = await open(idempotencyMs)
        return { store: stores.jobs, ...rest }
      },
    },
  )
  applicationStoreContract(
    { describe, test },
    {
      async open() {
        const { stores, close } = await open()
        return { store: stores.applications, close }
      },
    },
  )
})
