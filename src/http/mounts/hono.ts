import { checkHandler, type Handler, mountPathOf } from './mountable.js'

/** The used part of a Hono context; Hono is not imported. */
export interface HonoContext {
  req: { raw: Request; arrayBuffer?(): Promise<ArrayBuffer> }
}

/**
 * The handler as a Hono handler. `path` is where it is mounted.
 *
 * @example
 * app.all('/v1/*', honoMount(createHandler(engine), { path: '/v1' }))
 */
export function honoMount(
  handler: Handler,
  options: { path?: string } = {},
): (context: HonoContext) => Promise<Response> {
  checkHandler(handler)
  const mountPath = mountPathOf(options)
  return async ({ req }) => {
    if (!req.raw.bodyUsed) return handler(req.raw, { mountPath })
    // Hono caches a body that its own methods have read.
    const read = await req.arrayBuffer?.().catch(() => undefined)
    return handler(req.raw, { mountPath, bodyRead: true, parsedBody: read && new Uint8Array(read) })
  }
}
