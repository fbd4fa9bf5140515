// A Next.js route handler, for app/api/media/[[...path]]/route.js with the next.config.mjs of docs/platforms.md.
// Next.js builds a module more than once, so the engine is kept on globalThis. The handler is a plain (Request) =>
// Promise<Response>, as in every framework with routes of this kind.
import { createEngine } from 'stemwork'
import { createHandler } from 'stemwork/http'

const engine = (globalThis.stemworkEngine ??= createEngine())
// The build loads this file, too.
if (process.env.NEXT_PHASE !== 'phase-production-build') await engine.start()
const handler = createHandler(engine, {
  basePath: '/api/media',
  // Base of links: behind a proxy, Next.js knows only its own address. For example https://example.org/api/media
  publicUrl: process.env.PUBLIC_URL,
  // All visitors are one application, and see each other's jobs. Before others can reach it, use `authenticate`.
  anonymous: { id: 'web', name: 'Web site' },
})

export const GET = (request) => handler(request)
export const HEAD = GET
export const POST = GET
export const PUT = GET
export const PATCH = GET
export const DELETE = GET
export const OPTIONS = GET
export const runtime = 'nodejs'
