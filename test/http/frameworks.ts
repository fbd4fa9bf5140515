import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ServerType, serve as serveHono } from '@hono/node-server'
import express5 from 'express'
// @ts-expect-error Express 4 under an alias has no types of its own.
import express4Untyped from 'express4'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import type { Handler } from '../../src/http/index.js'
import { expressMount } from '../../src/http/mounts/express.js'
import { fastifyMount } from '../../src/http/mounts/fastify.js'
import { honoMount } from '../../src/http/mounts/hono.js'
import { koaMount } from '../../src/http/mounts/koa.js'
import { listener } from '../../src/http/mounts/node.js'

const express4 = express4Untyped as typeof express5

export interface Host {
  origin: string
  close(): Promise<void>
}

export interface Framework {
  name: string
  /**
   * An application of this framework with a route of its own at `/hello` and the handler under `/media/v1`. `parseFirst` puts a
   * body parser in front, as hosts do by mistake.
   */
  start(handler: Handler, options?: { parseFirst?: boolean }): Promise<Host>
}

export const frameworks: Framework[] = [
  {
    name: 'node:http',
    start(handler, { parseFirst = false } = {}) {
      const answer = listener(handler, { path: '/media' })
      return listen(async (request, response) => {
        if (request.url === '/hello') return void response.end('hello')
        if (parseFirst) await readAll(request)
        return answer(request, response)
      })
    },
  },
  { name: 'Express 4', start: (handler, options) => startExpress(express4, handler, options) },
  { name: 'Express 5', start: (handler, options) => startExpress(express5, handler, options) },
  {
    name: 'Koa',
    start(handler, { parseFirst = false } = {}) {
      const app = new Koa()
      app.silent = true
      if (parseFirst) {
        app.use(async (context, next) => {
          await readAll(context.req)
          await next()
        })
      }
      app.use(koaMount(handler, { path: '/media' }))
      app.use((context) => {
        context.body = 'hello'
      })
      return listen(app.callback())
    },
  },
  {
    name: 'Fastify',
    async start(handler, { parseFirst = false } = {}) {
      const app = Fastify()
      app.get('/hello', () => 'hello')
      if (parseFirst) app.addHook('onRequest', (request) => readAll(request.raw))
      await app.register(fastifyMount(handler), { prefix: '/media' })
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      return { origin, close: () => (app.server.closeAllConnections(), app.close()) }
    },
  },
  {
    name: 'Hono',
    async start(handler, { parseFirst = false } = {}) {
      const app = new Hono()
      app.get('/hello', (context) => context.text('hello'))
      if (parseFirst) {
        app.use(async (context, next) => {
          await context.req.arrayBuffer()
          await next()
        })
      }
      app.all('/media/*', honoMount(handler, { path: '/media' }))
      const server = await new Promise<ServerType>((resolve) => {
        const started = serveHono(
          { fetch: app.fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false },
          () => resolve(started),
        )
      })
      return host(server as Server)
    },
  },
]

function startExpress(
  express: typeof express5,
  handler: Handler,
  { parseFirst = false }: { parseFirst?: boolean } = {},
): Promise<Host> {
  const app = express()
  if (parseFirst) app.use(express.json(), express.raw({ type: () => true }))
  app.get('/hello', (_request, response) => void response.send('hello'))
  app.use('/media', expressMount(handler))
  return listen(app)
}

async function listen(onRequest: (...exchange: Parameters<RequestListener>) => unknown): Promise<Host> {
  const server = createServer((request, response) => void onRequest(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return host(server)
}

function host(server: Server): Host {
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function readAll(request: IncomingMessage): Promise<void> {
  for await (const _chunk of request);
}
