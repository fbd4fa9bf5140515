import { Redis } from 'ioredis'
import type { JobQueue } from 'stemwork'
import { bullmqQueue } from 'stemwork/bullmq'
import { expectType } from './expect-type.js'

expectType<JobQueue>()(bullmqQueue({ connection: 'redis://localhost', prefix: 'media' }))
bullmqQueue({ connection: new Redis({ lazyConnect: true }) })

// @ts-expect-error: a connection is needed
bullmqQueue({ name: 'media' })
