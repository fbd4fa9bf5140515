import { describe, test } from 'vitest'
import { applicationStoreContract, blobStoreContract, jobStoreContract } from '../../../src/contract/index.js'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { settableClock } from './settable-clock.js'

const onlyReadable = 'nobody but the store reaches its records'

describe('memoryJobs', () => {
  jobStoreContract(
    { describe, test },
    {
      async open({ idempotencyMs }) {
        const { clock, advance } = settableClock()
        return { store: memoryJobs({ clock, idempotencyMs }), advance, async close() {} }
      },
      skips: {
        'records that cannot be read do not prevent other jobs from being claimed': onlyReadable,
        'a page leaves out a record that cannot be read and shows the others, and `unreadable` names it': onlyReadable,
        'more damaged records than a batch holds hide no readable one from the sweep': onlyReadable,
      },
    },
  )
})

describe('memoryBlobs', () => {
  blobStoreContract(
    { describe, test },
    {
      open: async () => ({ store: memoryBlobs(), async close() {} }),
      skips: {
        '50 MB are written and read without being held in memory':
          'the store is memory: it holds every byte on purpose',
      },
    },
  )
})

describe('memoryApplications', () => {
  applicationStoreContract(
    { describe, test },
    { open: async () => ({ store: memoryApplications(), async close() {} }) },
  )
})
