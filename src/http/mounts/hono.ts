import type { Handler } from './mountable.js'

/** What is used of a Hono context; nothing of Hono is imported. */
export interface HonoContext {
  req: { raw: Request }
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
  const mountPath = (options.path ?? '').replace(/\/+$/, '')
  return ({ req }) => handler(req.raw, { mountPath })
}
