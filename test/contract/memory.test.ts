import { describe, test } from 'vitest'
import { applicationStoreContract, blobStoreContract, jobStoreContract } from '../../src/contract/index.js'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
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
        'records that cannot be read keep no other job from being claimed': onlyReadable,
        'a page shows the rest beside a record that cannot be read, and the store names that one': onlyReadable,
        'more damaged records than a batch holds keep no sound one from the sweep': onlyReadable,
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
        '50 MB are written and read without holding them': 'the store is memory: it holds every byte on purpose',
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
