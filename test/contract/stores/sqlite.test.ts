import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { describe, test } from 'vitest'
import { applicationStoreContract, jobStoreContract } from '../../../src/contract/index.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { sqliteStores } from '../../../src/adapters/stores/sqlite/index.js'
import { settableClock } from './settable-clock.js'

async function open(idempotencyMs?: number) {
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-sqlite-'))
  const { clock, advance } = settableClock()
  const path = join(directory, 'jobs.db')
  let stores = sqliteStores({ path, clock, idempotencyMs })
  return {
    stores,
    /** The jobs of the store that is currently open: damaging a record closes the file for a moment. */
    jobs: new Proxy(stores.jobs, { get: (_, name) => stores.jobs[name as keyof JobStore] }),
    async damage(id: string) {
      stores.close()
      const database = new Database(path)
      database.prepare("UPDATE jobs SET record = '{}' WHERE id = ?").run([id])
      database.close()
      stores = sqliteStores({ path, clock, idempotencyMs })
    },
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
        const { jobs, advance, damage, close } = await open(idempotencyMs)
        return { store: jobs, advance, damage, close }
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
