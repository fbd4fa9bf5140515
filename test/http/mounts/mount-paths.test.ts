import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express5 from 'express'
// @ts-expect-error Express 4 under an alias has no types of its own.
import express4Untyped from 'express4'
import Fastify, { type FastifyServerOptions } from 'fastify'
import Koa from 'koa'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Handler } from '../../../src/http/index.js'
import { type ExpressRequest, expressMount } from '../../../src/http/mounts/express.js'
import { fastifyMount } from '../../../src/http/mounts/fastify.js'
import { koaMount } from '../../../src/http/mounts/koa.js'
import { type Service, startService } from '../harness.js'
import { rawRequest } from './raw-request.js'

let service: Service
const ends: (() => unknown)[] = []
beforeAll(async () => {
  service = await startService({ http: { metrics: true } })
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})
afterAll(() => service.close())

const withoutProxy = (url = '') => url.replace(/^\/proxy/, '')

function express(version: typeof express5, handler: Handler) {
  const app = version()
  app.use((request, _response, next) => {
    request.url = withoutProxy(request.url).replace(/^\/old/, '/media/v1')
    next()
  })
  app.use('/media', expressMount(handler))
  app.use('/of/:shop', version.Router().use('/media', expressMount(handler)))
  return listen(app)
}

function koa(handler: Handler) {
  const app = new Koa()
  app.use((context, next) => {
    context.url = withoutProxy(context.url).replace(/^\/old/, '/media/v1')
    return next()
  })
  app.use(koaMount(handler, { path: '/media' }))
  const answer = app.callback()
  return listen((request, response) => answer(request, response))
}

async function fastify(handler: Handler, prefix: string, options: FastifyServerOptions = {}) {
  const app = Fastify(options)
  await app.register(fastifyMount(handler), { prefix })
  ends.push(() => app.close())
  return app.listen({ port: 0, host: '127.0.0.1' })
}

/** Replaces connect, which is not installed: cuts off the path and keeps the original URL. */
function connect(handler: Handler) {
  const mount = expressMount(handler)
  return listen((request, response) => {
    const whole = request.url ?? ''
    Object.assign(request, { originalUrl: whole, url: whole.replace(/^\/media/, '') || '/' })
    mount(request as ExpressRequest, response)
  })
}

async function listen(onRequest: (...exchange: Parameters<RequestListener>) => unknown): Promise<string> {
  const server: Server = createServer((request, response) => void onRequest(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => (server.closeAllConnections(), server.close()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const express4 = (handler: Handler) => express(express4Untyped as typeof express5, handler)
const unforgiving = (handler: Handler) =>
  fastify(handler, '/media', { routerOptions: { caseSensitive: false, ignoreDuplicateSlashes: true } })

type Start = (handler: Handler) => Promise<string>
const cases: [string, Start, asked: string, linked?: string][] = [
  ['Express 4, of which a middleware takes the path of a proxy', express4, '/proxy/media/v1'],
  ['Express 4, of which a middleware gives an old path a new one', express4, '/old', '/media/v1'],
  ['Express 4, in a router with a param', express4, '/of/a%20%C3%BC/media/v1'],
  [
    'Express 5, of which a middleware takes the path of a proxy',
    (given) => express(express5, given),
    '/proxy/media/v1',
  ],
  ['Express 5, in a router with a param', (given) => express(express5, given), '/of/a%20%C3%BC/media/v1'],
  ['Koa, of which a middleware takes the path of a proxy', koa, '/proxy/media/v1'],
  ['Koa, of which a middleware gives an old path a new one', koa, '/old', '/media/v1'],
  ['Fastify, under a prefix with a param', (given) => fastify(given, '/of/:shop/media'), '/of/a%20%C3%BC/media/v1'],
  ['Fastify, under a prefix that ends with a slash', (given) => fastify(given, '/media/'), '/media/v1'],
  ['Fastify, which takes other cases', unforgiving, '/MEDIA/v1'],
  ['Fastify, which takes more slashes', unforgiving, '//media/v1'],
  [
    'Fastify, which takes off the path of a proxy',
    (given) => fastify(given, '/media', { rewriteUrl: ({ url }) => withoutProxy(url) }),
    '/proxy/media/v1',
  ],
  ['connect', connect, '/media/v1'],
]

test.each(cases)('a mount in %s is found, and its links lead there', async (_, start, asked, linked = asked) => {
  const origin = await start(service.handler)
  const answer = await fetch(`${origin}${asked}/upload`, { headers: { authorization: service.app.key } })
  const ticket = (await answer.json()) as { uploadUrl: string }
  expect(ticket.uploadUrl).toContain(`${origin}${linked}/storage/uploads/`)
  expect((await fetch(ticket.uploadUrl, { method: 'PUT', body: 'la la la' })).status).toBe(200)
})

test.each<[string, Start, path: string]>([
  ['Express 4', express4, '/of/a"b|<c>`{d}/media/v1'],
  ['Express 5', (given) => express(express5, given), '/of/a"b|<c>`{d}/media/v1'],
  ['Fastify', (given) => fastify(given, '/of/:shop/media'), '/of/a"b|<c>`{d}/media/v1'],
])('a mount in %s is found by clients that do not escape the param before it', async (_, start, path) => {
  const origin = await start(service.handler)
  const head = `Host: ${new URL(origin).host}\r\nAuthorization: ${service.app.key}\r\nConnection: close\r\n\r\n`
  for (const [end, says] of [
    ['', 'openapi.json'],
    ['/application', service.app.id],
  ] as const) {
    const { status, body } = await rawRequest(origin, [`GET ${path}${end} HTTP/1.1\r\n${head}`])
    expect([end, status, body]).toEqual([end, 200, expect.stringContaining(says)])
  }
})

test.each(cases.slice(0, 1))('a mount in %s answers at its own address, with or without a query', async (_, start) => {
  const origin = await start(service.handler)
  for (const end of ['', '/', '?a=b']) {
    const answer = await fetch(`${origin}/proxy/media/v1${end}`)
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('/proxy/media/v1/openapi.json')])
  }
})

/** Frameworks with a guard of the host in front of the mount. */
const guards: [string, (handler: Handler, guarded: string) => Promise<string>][] = [
  ...([express4Untyped as typeof express5, express5] as const).map((version, index): (typeof guards)[number] => [
    `Express ${index + 4}`,
    (handler, guarded) => {
      const app = version()
      app.use(guarded, (_request, response) => void response.sendStatus(403))
      app.use('/media', expressMount(handler))
      return listen(app)
    },
  ]),
  [
    'Koa',
    (handler, guarded) => {
      const app = new Koa()
      app.silent = true
      app.use((context, next) => (context.path.startsWith(guarded) ? context.throw(403) : next()))
      app.use(koaMount(handler, { path: '/media' }))
      return listen(app.callback())
    },
  ],
  [
    'Fastify',
    async (handler, guarded) => {
      const app = Fastify()
      app.addHook('onRequest', async ({ url }, reply) => {
        if (url.startsWith(guarded)) await reply.code(403).send()
      })
      await app.register(fastifyMount(handler), { prefix: '/media' })
      ends.push(() => app.close())
      return app.listen({ port: 0, host: '127.0.0.1' })
    },
  ],
]

test.each(guards)('a path that leads past a guard of the host in %s leads nowhere', async (_, start) => {
  const origin = await start(service.handler, '/media/v1/metrics')
  const head = `Host: ${new URL(origin).host}\r\nConnection: close\r\n\r\n`
  const asked = async (path: string) => (await rawRequest(origin, [`GET ${path} HTTP/1.1\r\n${head}`])).status
  expect(await asked('/media/v1/metrics')).toBe(403)
  for (const end of [
    'x/../metrics',
    'x/%2E%2e/metrics',
    'x/.%2e/metrics?a=b',
    './metrics',
    '%2e/metrics',
    'x\\..\\metrics',
  ])
    expect([end, await asked(`/media/v1/${end}`)]).toEqual([end, 400])
  expect(await asked('/media/v1\\metrics')).toBe(400)
  expect(await asked('/media/v1/healthz?to=/../%2e%2e/')).toBe(200)
})
