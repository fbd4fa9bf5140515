import express from 'express'
import { expressMount } from 'stemwork/express'
import { createHandler } from 'stemwork/http'
import { closeEngine, engine, firstKey } from './engine.js'

const key = await firstKey()
await engine.start()

const app = express()
// Before body parsers: uploads are streams.
app.use('/v1', expressMount(createHandler(engine, { console: true })))
app.use(express.json())
app.get('/', (request, response) => response.redirect('/v1/console'))

const port = Number(process.env.PORT ?? 8080)
const host = process.env.HOST ?? '127.0.0.1'
const server = app.listen(port, host, (error) => {
  if (error) throw error // the port is taken, for example
  console.log(`http://${host}:${port}/v1/console${key === undefined ? '' : ` with API key ${key}`}`)
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.close()
    void closeEngine().then(() => process.exit())
  })
}
