import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { honoMount } from 'stemwork/hono'
import { createHandler } from 'stemwork/http'
import { closeEngine, engine, firstKey } from './engine.js'

const key = await firstKey()
await engine.start()

const app = new Hono()
app.all('/v1/*', honoMount(createHandler(engine, { console: true }), { path: '/v1' }))
app.get('/', (context) => context.redirect('/v1/console'))

const port = Number(process.env.PORT ?? 8080)
const host = process.env.HOST ?? '127.0.0.1'
const server = serve({ fetch: app.fetch, port, hostname: host, overrideGlobalObjects: false }, () => {
  console.log(`http://${host}:${port}/v1/console${key === undefined ? '' : ` with API key ${key}`}`)
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.close()
    void closeEngine().then(() => process.exit())
  })
}
