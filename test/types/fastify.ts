import { fastify } from 'fastify'
import { fastifyMount } from 'stemwork/fastify'
import type { Handler } from 'stemwork/http'

declare const handler: Handler
void fastify().register(fastifyMount(handler), { prefix: '/v1' })

// @ts-expect-error: the prefix is an option of `register`
fastifyMount(handler, { prefix: '/v1' })
