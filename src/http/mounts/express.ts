import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Handler } from './mountable.js'
import { mountPointOf, responder } from './node-bridge.js'

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
  return (request, response) => {
    // connect has no `baseUrl`: what it has cut off is missing in `url`.
    const { baseUrl = '', url = '' } = request as Partial<ExpressRequest>
    const { originalUrl } = request
    // With a whole address in the request line, Express leaves its host in front of the path.
    const isPath = url.startsWith('/')
    const place = isPath ? mountPointOf(originalUrl, baseUrl + url, baseUrl) : { mountPath: baseUrl, originalUrl }
    void respond(request, response, place)
  }
}
