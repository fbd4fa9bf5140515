// applications-contract.mjs: does the store keep the promises of its port? node --test applications-contract.mjs
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { applicationStoreContract } from 'stemwork/contract'
import { fileApplications } from './applications.mjs'

applicationStoreContract(
  { describe, test },
  {
    async open() {
      const folder = await mkdtemp(join(tmpdir(), 'applications-'))
      const { applications, close } = await fileApplications({ path: join(folder, 'journal') })
      return { store: applications, close: () => close().then(() => rm(folder, { recursive: true })) }
    },
  },
)
