// The service inside an Express server, version 4 or 5. Mount it before body parsers: uploads are streams.
import express from 'express'
import { createEngine } from 'stemwork'
import { expressMount } from 'stemwork/express'
import { createApplication, createHandler, issueKey } from 'stemwork/http'

const engine = createEngine()
await engine.start() // this process also runs jobs
const application = await createApplication(engine.applications, { name: 'my shop' })
const { key } = await issueKey(engine.applications, application.id)

const app = express()
app.use('/v1', expressMount(createHandler(engine)))
app.use(express.json())
const port = Number(process.env.PORT ?? 8080)
app.listen(port, '127.0.0.1', (error) => {
  if (error) throw error // the port is taken, for example
  console.log(`http://127.0.0.1:${port}/v1 with API key ${key}`)
})
