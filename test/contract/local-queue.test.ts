import { describe, test } from 'vitest'
import { jobQueueContract } from '../../src/contract/index.js'
import { localQueue } from '../../src/adapters/queues/local/local-queue.js'

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
