// The service inside a Hono app. `overrideGlobalObjects: false` leaves your process's Request and Response alone.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { createEngine } from 'stemwork'
import { honoMount } from 'stemwork/hono'
import { createApplication, createHandler, issueKey } from 'stemwork/http'

const engine = createEngine()
await engine.start()
const application = await createApplication(engine.applications, { name: 'my shop' })
const { key } = await issueKey(engine.applications, application.id)

const app = new Hono()
app.all('/v1/*', honoMount(createHandler(engine), { path: '/v1' }))
serve(
  { fetch: app.fetch, port: Number(process.env.PORT ?? 8080), hostname: '127.0.0.1', overrideGlobalObjects: false },
  ({ port }) => {
    console.log(`http://127.0.0.1:${port}/v1 with API key ${key}`)
  },
)
