import { createServer, type Server } from 'node:http'
import type { Handler } from 'stemwork/http'
import { acceptUpgrades, listener, type RunningServer, serve } from 'stemwork/node'
import { expectType } from './expect-type.js'

declare const handler: Handler
const server = createServer(listener(handler, { path: '/api' }))
acceptUpgrades(server, handler)
// @ts-expect-error: the handler has the addresses
acceptUpgrades(server)

export async function use(): Promise<void> {
  const running = await serve(handler, { port: 0, host: '127.0.0.1' })
  expectType<RunningServer>()(running)
  expectType<Server>()(running.server)
  expectType<number>()(running.port)
  await running.close({ timeoutMs: 1000 })
  // @ts-expect-error: a port is a number
  await serve(handler, { port: '8080' })
}

// @ts-expect-error: an engine is not a handler
listener({})
