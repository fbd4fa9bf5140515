import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ServerType, serve as serveHono } from '@hono/node-server'
import express5 from 'express'
// @ts-expect-error Express 4 under an alias has no types of its own.
import express4Untyped from 'express4'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { bodyParser } from '@koa/bodyparser'
import Koa from 'koa'
import { koaBody } from 'koa-body'
import type { Handler } from '../../../src/http/index.js'
import { expressMount } from '../../../src/http/mounts/express.js'
import { fastifyMount } from '../../../src/http/mounts/fastify.js'
import { honoMount } from '../../../src/http/mounts/hono.js'
import { koaMount } from '../../../src/http/mounts/koa.js'
import { listener } from '../../../src/http/mounts/node.js'

const express4 = express4Untyped as typeof express5

export interface Host {
  origin: string
  close(): Promise<void>
}

export interface StartOptions {
  /** `parsed`: the framework's usual body parsers. `text`: one that makes any body a string. `dropped`: middleware that discards what it reads. */
  bodies?: 'parsed' | 'text' | 'dropped'
}

export interface Framework {
  name: string
  /**
   * An application of this framework with its own route at `/hello` and the handler under `/media/v1`, behind the body
   * parsers.
   */
  start(handler: Handler, options?: StartOptions): Promise<Host>
}

export const frameworks: Framework[] = [
  {
    name: 'node:http',
    start(handler, { bodies } = {}) {
      const answer = listener(handler, { path: '/media' })
      return listen(async (request, response) => {
        if (request.url === '/hello') return void response.end('hello')
        const body = bodies && (await readAll(request))
        if (bodies === 'parsed' && body)
          Object.assign(request, { body: request.method === 'PUT' ? body : JSON.parse(body) })
        return answer(request, response)
      })
    },
  },
  { name: 'Express 4', start: (handler, options) => startExpress(express4, handler, options) },
  { name: 'Express 5', start: (handler, options) => startExpress(express5, handler, options) },
  ...(
    [
      ['Koa', bodyParser()],
      ['Koa with koa-body', koaBody()],
    ] as const
  ).map(([name, parser]): Framework => ({
    name,
    start(handler, { bodies } = {}) {
      const app = new Koa()
      app.silent = true
      if (bodies === 'parsed' || bodies === 'text') app.use(parser as Koa.Middleware)
      if (bodies === 'dropped') {
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
  })),
  {
    name: 'Fastify',
    async start(handler, { bodies } = {}) {
      const app = Fastify()
      app.get('/hello', () => 'hello')
      if (bodies === 'parsed')
        app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
      if (bodies === 'dropped') app.addHook('onRequest', async (request) => void (await readAll(request.raw)))
      await app.register(fastifyMount(handler), { prefix: '/media' })
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      return { origin, close: () => (app.server.closeAllConnections(), app.close()) }
    },
  },
  {
    name: 'Hono',
    async start(handler, { bodies } = {}) {
      const app = new Hono()
      app.get('/hello', (context) => context.text('hello'))
      if (bodies) {
        app.use(async (context, next) => {
          if (bodies === 'dropped') await context.req.raw.arrayBuffer()
          else if (context.req.method === 'POST' && bodies === 'parsed') await context.req.json()
          else await context.req.text()
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

function startExpress(express: typeof express5, handler: Handler, { bodies }: StartOptions = {}): Promise<Host> {
  const app = express()
  if (bodies === 'parsed') app.use(express.json(), express.raw({ type: () => true }))
  if (bodies === 'text') app.use(express.text({ type: () => true }))
  if (bodies === 'dropped') app.use((request, _response, next) => void request.resume().once('end', next))
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

async function readAll(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
