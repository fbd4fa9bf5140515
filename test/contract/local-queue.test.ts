import { describe, test } from 'vitest'
import { jobQueueContract } from '../../src/adapters/contract/index.js'
import { localQueue } from '../../src/core/dispatch/local-queue.js'

describe('localQueue', () => {
  jobQueueContract(
    { describe, test },
    {
      async open() {
        const queue = localQueue()
        return { queue, close: () => queue.close() }
      },
    },
  )
})
