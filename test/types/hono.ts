import { Hono } from 'hono'
import { honoMount } from 'stemwork/hono'
import type { Handler } from 'stemwork/http'

declare const handler: Handler
new Hono().all('/v1/*', honoMount(handler, { path: '/v1' }))

// @ts-expect-error: a path is text
honoMount(handler, { path: true })
