// The service on node:http, without a framework.
import { createServer } from 'node:http'
import { createEngine } from 'stemwork'
import { createApplication, createHandler, issueKey } from 'stemwork/http'
import { listener } from 'stemwork/node'

const engine = createEngine()
await engine.start()
const application = await createApplication(engine.applications, { name: 'my shop' })
const { key } = await issueKey(engine.applications, application.id)

const server = createServer(listener(createHandler(engine, { basePath: '/v1' })))
const port = Number(process.env.PORT ?? 8080)
server.listen(port, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${port}/v1 with API key ${key}`)
})
