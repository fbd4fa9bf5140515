import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { bullmqQueue } from '../../../src/adapters/queues/bullmq/index.js'
import { jobQueueContract } from '../../../src/contract/job-queue.js'
import { describeWith } from '../../servers/found-server.js'
import { findRedis } from '../../servers/redis.js'

const redis = await findRedis()

describeWith('bullmqQueue', { redis }, ({ redis: server }) => {
  let connection: Redis
  beforeAll(() => void (connection = new Redis(server.url)))
  afterAll(async () => {
    connection.disconnect()
    await server.release()
  })

  jobQueueContract(
    { describe, test },
    {
      async open() {
        const prefix = `test-${randomUUID()}`
        const queue = bullmqQueue({ connection, prefix })
        return {
          queue,
          async close() {
            await queue.close()
            const keys = await connection.keys(`${prefix}:*`)
            if (keys.length > 0) await connection.del(keys)
          },
        }
      },
    },
  )
})
