import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { installedFile } from '../../core/engine/package-files.js'
import { type ApiAnswer, empty, text } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import { defineRoute, type Route } from '../routing/route.js'

const assets: Record<string, string | undefined> = {
  'app.js': 'text/javascript; charset=utf-8',
  'console.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
  'NOTICE.txt': 'text/plain; charset=utf-8',
}

// Relative, so that it also works under a path that a proxy adds.
const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>stemwork</title>
<link rel="icon" href="console/icon.svg">
<link rel="stylesheet" href="console/console.css">
<script type="module" src="console/app.js"></script>
</head>
<body><div id="app"><noscript>This page needs JavaScript.</noscript></div></body>
</html>
`

/** `/console`: a page to use the service with. It has no rights of its own: it calls the public interface with the key that is typed in. */
export const consoleRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/console',
    operation: 'getConsole',
    summary: 'A page to send songs, follow jobs and listen to stems',
    access: 'open',
    answer: { description: 'The page.', contentType: 'text/html' },
    async handle(call) {
      // The page's relative addresses need it to end without a slash.
      if (call.request.address().pathname.endsWith('/')) return empty(308, { location: '../console' })
      return text(html, 'text/html; charset=utf-8', pageHeaders(call))
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/console/:asset',
    operation: 'getConsoleAsset',
    summary: 'A part of the page',
    access: 'open',
    answer: { description: 'The part.', contentType: 'text/javascript' },
    problems: ['NOT_FOUND'],
    handle: (call, { params }) => asset(call, params.asset),
  }),
]

function pageHeaders(call: Call): Record<string, string> {
  // Links begin with `publicUrl`, which may be another origin than the one that the page came from.
  const service = new URL(call.baseUrl).origin
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${service}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'cache-control': 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cross-origin-opener-policy': 'same-origin',
  }
}

const known = new Map<string, { body: string; etag: string }>()

async function asset(call: Call, name: string): Promise<ApiAnswer> {
  const contentType = Object.hasOwn(assets, name) ? assets[name] : undefined
  if (contentType === undefined) throw new Problem('NOT_FOUND', 'There is no such part of the page.')
  const { body, etag } = known.get(name) ?? (await load(name))
  const headers = { etag, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' }
  if (call.request.headers.get('if-none-match')?.includes(etag)) return empty(304, headers)
  return text(body, contentType, headers)
}

async function load(name: string): Promise<{ body: string; etag: string }> {
  const body = await readFile(installedFile(`dist/console/${name}`), 'utf8')
  const loaded = { body, etag: `"${createHash('sha256').update(body).digest('hex').slice(0, 32)}"` }
  known.set(name, loaded)
  return loaded
}
