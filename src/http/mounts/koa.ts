import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Handler, mountPathOf } from './mountable.js'
import { mountPointOf, responder } from './node-bridge.js'

/** The used part of a Koa context; Koa is not imported. */
export interface KoaContext {
  req: IncomingMessage
  res: ServerResponse
  path: string
  url: string
  originalUrl: string
  respond?: boolean
  /** Body parsers put the parsed body here. */
  request?: { body?: unknown }
}

export type KoaMiddleware = (context: KoaContext, next: () => Promise<unknown>) => Promise<void>

/**
 * The handler as Koa middleware. `path` is where it is mounted; other paths go to the next middleware. Use it before
 * any body parser that reads uploads; JSON that a parser has already read is used.
 *
 * @example
 * app.use(koaMount(createHandler(engine), { path: '/v1' }))
 */
export function koaMount(handler: Handler, options: { path?: string } = {}): KoaMiddleware {
  const path = mountPathOf(options)
  const respond = responder(handler)
  return async (context, next) => {
    if (context.path !== path && !context.path.startsWith(`${path}/`)) {
      await next()
      return
    }
    // Koa would end the response a second time.
    context.respond = false
    await respond(context.req, context.res, {
      ...mountPointOf(context.originalUrl, context.url, path),
      parsedBody: context.request?.body,
    })
  }
}
