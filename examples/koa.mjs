// The service inside a Koa server.
import Koa from 'koa'
import { createEngine } from 'stemwork'
import { createApplication, createHandler, issueKey } from 'stemwork/http'
import { koaMount } from 'stemwork/koa'

const engine = createEngine()
await engine.start()
const application = await createApplication(engine.applications, { name: 'my shop' })
const { key } = await issueKey(engine.applications, application.id)

const app = new Koa()
app.use(koaMount(createHandler(engine), { path: '/v1' }))
const port = Number(process.env.PORT ?? 8080)
app.listen(port, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${port}/v1 with API key ${key}`)
})
