import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { readFileSync } from 'node:fs'
import { createServer as createRawServer, type AddressInfo, type Server as RawServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { AddressPolicy } from '../../src/core/engine/fetch/address-guard.js'
import type { Dial } from '../../src/core/engine/fetch/dial.js'

async function listening(server: Server | RawServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

export interface Loopback {
  url: string
  port: number
  /** Allows this server only. */
  policy: AddressPolicy
  /** The requests received, in order. */
  requests: IncomingMessage[]
}

/** A real HTTP server on loopback, closed after the test. */
export async function loopback(answer: (...exchange: Parameters<RequestListener>) => unknown): Promise<Loopback> {
  const requests: IncomingMessage[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    requests.push(request)
    answer(request, response)
  })
  onTestFinished(() => (server.close(), server.closeAllConnections()))
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}/`, port, policy: { allow: [`127.0.0.1:${port}`] }, requests }
}

export const certificatePath = new URL('./fixtures/loopback-certificate.pem', import.meta.url)

/** A real HTTPS server on loopback with an untrusted certificate. */
export async function secureLoopback(answer: (...exchange: Parameters<RequestListener>) => unknown): Promise<Loopback> {
  const key = readFileSync(new URL('./fixtures/loopback-key.pem', import.meta.url))
  const server = createSecureServer({ key, cert: readFileSync(certificatePath) }, answer)
  onTestFinished(() => (server.close(), server.closeAllConnections()))
  const port = await listening(server)
  return { url: `https://127.0.0.1:${port}/`, port, policy: { allow: [`127.0.0.1:${port}`] }, requests: [] }
}

/** A TCP server on loopback that sends what `talk` writes. */
export async function rawLoopback(talk: (socket: Socket) => void): Promise<Loopback> {
  const sockets = new Set<Socket>()
  const server = createRawServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    talk(socket)
  })
  onTestFinished(() => (server.close(), sockets.forEach((socket) => socket.destroy())))
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}/`, port, policy: { allow: [`127.0.0.1:${port}`] }, requests: [] }
}

/** Records what would be dialled but dials nothing: no test may leave loopback. */
export function noDial(): { dial: Dial; dialled: string[] } {
  const dialled: string[] = []
  return {
    dialled,
    dial: async (_target, vetted) => {
      dialled.push(...vetted.map(({ address }) => address))
      throw new Error('the test dials nothing')
    },
  }
}

/** The error that the promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => {
      throw new Error('expected a rejection')
    },
    (error: unknown) => error,
  )
}
