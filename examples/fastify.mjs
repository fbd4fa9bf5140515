// The service inside a Fastify server. It has its own scope, so your content parsers are not affected.
import Fastify from 'fastify'
import { createEngine } from 'stemwork'
import { fastifyMount } from 'stemwork/fastify'
import { createApplication, createHandler, issueKey } from 'stemwork/http'

const engine = createEngine()
await engine.start()
const application = await createApplication(engine.applications, { name: 'my shop' })
const { key } = await issueKey(engine.applications, application.id)

const app = Fastify()
await app.register(fastifyMount(createHandler(engine)), { prefix: '/v1' })
const address = await app.listen({ port: Number(process.env.PORT ?? 8080), host: '127.0.0.1' })
console.log(`${address}/v1 with API key ${key}`)
