// A Next.js route handler: save it as app/api/media/[...path]/route.js. Next builds a module more than once, so the engine is kept
// on globalThis. The handler is a plain (Request) => Promise<Response>, as every framework with such routes wants it.
// PUBLIC_URL is the address that browsers see, for example https://example.org/api/media: behind a proxy Next tells the handler
// of localhost, and links would lead there.
import { createEngine } from 'stemwork'
import { createHandler } from 'stemwork/http'

const engine = (globalThis.stemworkEngine ??= createEngine())
await engine.start()
const handler = createHandler(engine, {
  basePath: '/api/media',
  publicUrl: process.env.PUBLIC_URL,
  anonymous: { id: 'web', name: 'Web site' },
})

export const GET = (request) => handler(request)
export const HEAD = GET
export const POST = GET
export const PUT = GET
export const DELETE = GET
export const runtime = 'nodejs'
