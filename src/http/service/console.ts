import { empty, text } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { defineRoute, type Route } from '../routing/route.js'
import { pageAsset } from './page-assets.js'

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
<body>
<div id="app"></div>
<noscript>
<main class="plain-page">
<h1>stemwork</h1>
<p>This page needs JavaScript, because it plays and mixes audio in the browser. Turn JavaScript on for this site, then reload the page.</p>
<p>Without JavaScript, use the <a href="docs">HTTP interface</a>, for example with curl, or run <code>npx stemwork separate song.mp3</code> in a terminal.</p>
</main>
</noscript>
</body>
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
    atRoot: true,
    answer: { description: 'The page.', contentType: 'text/html' },
    async handle(call) {
      // The page's relative addresses need it to end without a slash, and below the base path.
      if (call.request.address().pathname.endsWith('/')) return empty(308, { location: '../console' })
      if (call.isAtRoot) return empty(307, { location: `${call.baseUrl}/console` })
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
    handle: (call, { params }) => pageAsset(call, params.asset),
  }),
]

/** The policy of a page that runs only its own script and talks only to the service. */
export function pageHeaders(call: Call): Record<string, string> {
  // Links begin with `publicUrl`, which may be another origin than the one that the page came from.
  const service = new URL(call.baseUrl).origin
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    // Files that a person has chosen, to read their length before they are sent.
    'media-src blob:',
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
