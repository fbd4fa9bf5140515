import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Handler } from './mountable.js'
import { mountPointOf, responder } from './node-bridge.js'

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
    // The prefix as the request has it: values in place of params, its own case, its own slashes.
    const depth = scope.prefix.split('/').filter(Boolean).length
    const front = new RegExp(`^(?:/+[^/?#]+){${depth}}`)
    scope.removeAllContentTypeParsers()
    // Leaves the payload unread.
    scope.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
    const answer = async ({ raw, originalUrl, body }: FastifyRequest, reply: FastifyReply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        if (value !== undefined) reply.raw.setHeader(name, value)
      }
      reply.hijack()
      const { url = '' } = raw
      const place = mountPointOf(originalUrl, url, front.exec(url)?.[0] ?? scope.prefix)
      await respond(raw, reply.raw, { ...place, parsedBody: body })
    }
    scope.all('/', answer)
    scope.all('/*', answer)
    done()
  }
}
