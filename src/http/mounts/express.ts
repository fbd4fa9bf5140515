import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Handler } from './mountable.js'
import { mountPointOf, responder } from './node-bridge.js'

/** The fields that Express 4 and 5 add to a request; Express is not imported. */
export interface ExpressRequest extends IncomingMessage {
  /** Path that routers have cut off `url`. */
  baseUrl: string
  originalUrl: string
}

export type ExpressMiddleware = (request: ExpressRequest, response: ServerResponse) => void

/**
 * The handler as Express middleware, for Express 4 and 5. Mount it under a path, before any body parser that reads
 * uploads; JSON that a parser has already read is used.
 *
 * @example
 * app.use('/v1', expressMount(createHandler(engine)))
 */
export function expressMount(handler: Handler): ExpressMiddleware {
  const respond = responder(handler)
  return (request, response) => {
    // connect has no `baseUrl`: the path that it has cut off is missing from `url`.
    const { baseUrl = '', url = '' } = request as Partial<ExpressRequest>
    const { originalUrl } = request
    // If the request line has a whole address, Express leaves its host in front of the path.
    const isPath = url.startsWith('/')
    const place = isPath ? mountPointOf(originalUrl, baseUrl + url, baseUrl) : { mountPath: baseUrl, originalUrl }
    void respond(request, response, place)
  }
}
