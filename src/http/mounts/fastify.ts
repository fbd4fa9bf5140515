import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Handler } from './mountable.js'
import { responder } from './node-bridge.js'

/** The used part of a Fastify instance; Fastify is not imported. */
export interface FastifyScope {
  prefix: string
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: '*',
    parser: (request: unknown, payload: unknown, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown
  all(path: string, handler: (request: FastifyRequest, reply: FastifyReply) => Promise<void>): unknown
}

export interface FastifyRequest {
  raw: IncomingMessage
  originalUrl: string
  body?: unknown
}

export interface FastifyReply {
  raw: ServerResponse
  hijack(): unknown
  getHeaders(): Record<string, number | string | string[] | undefined>
}

/**
 * The handler as a Fastify plugin, in its own scope, so that the host's body parsers do not touch its requests.
 *
 * @example
 * await app.register(fastifyMount(createHandler(engine)), { prefix: '/v1' })
 */
export function fastifyMount(
  handler: Handler,
): (scope: FastifyScope, options: unknown, done: (error?: Error) => void) => void {
  const respond = responder(handler)
  return (scope, _options, done) => {
    scope.removeAllContentTypeParsers()
    // Leaves the payload unread.
    scope.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
    const answer = async ({ raw, originalUrl, body }: FastifyRequest, reply: FastifyReply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        if (value !== undefined) reply.raw.setHeader(name, value)
      }
      reply.hijack()
      await respond(raw, reply.raw, { mountPath: scope.prefix, originalUrl, parsedBody: body })
    }
    scope.all('/', answer)
    scope.all('/*', answer)
    done()
  }
}
