import { describe, test } from 'vitest'
import { jobQueueContract } from '../../../src/contract/index.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'

describe('memoryQueue', () => {
  jobQueueContract(
    { describe, test },
    {
      async open() {
        const queue = memoryQueue()
        return { queue, close: () => queue.close() }
      },
    },
  )
})
