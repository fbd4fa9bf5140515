import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Handler } from './mountable.js'
import { responder } from './node-bridge.js'

/** What Express 4 and 5 add to a request; Express is not imported. */
export interface ExpressRequest extends IncomingMessage {
  /** Path that routers have cut off `url`. */
  baseUrl: string
  originalUrl: string
}

export type ExpressMiddleware = (request: ExpressRequest, response: ServerResponse) => void

/**
 * The handler as Express middleware, for Express 4 and 5. Mount it under a path, before any body parser that reads
 * uploads; JSON that one has already parsed is used.
 *
 * @example
 * app.use('/v1', expressMount(createHandler(engine)))
 */
export function expressMount(handler: Handler): ExpressMiddleware {
  const respond = responder(handler)
  return (request, response) =>
    void respond(request, response, { mountPath: request.baseUrl, originalUrl: request.originalUrl })
}
