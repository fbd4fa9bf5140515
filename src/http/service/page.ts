import type { Call } from '../routing/call.js'
import { type ApiAnswer, empty, text } from '../routing/answer.js'
import { code, escape, htmlDocument, pageLinks } from './docs-html.js'

/** A page of the service that a script fills. */
export interface PageText {
  /** Its last path segment. Its parts lie below that. */
  name: string
  title: string
  style: string
  script: string
  /** The web app manifest, with which browsers install the page. */
  manifest?: string
  /** Additions to the policy for scripts, and the policy for workers. Default: the page's own script alone. */
  policy?: { script: string; worker: string }
  /** Shown where JavaScript is off: paragraphs, as HTML. */
  withoutScript: readonly string[]
}

/** The page, or a redirect to it: its relative addresses need a path without a trailing slash. */
export function pageAnswer(call: Call, page: PageText): ApiAnswer {
  if (call.request.address().pathname.endsWith('/')) return empty(308, { location: `../${page.name}` })
  return text(html(page), 'text/html; charset=utf-8', pageHeaders(call, page.policy))
}

function html({ name, title, style, script, manifest, withoutScript }: PageText): string {
  const paragraphs = withoutScript.map((paragraph) => `<p>${paragraph}</p>`)
  // iOS takes no SVG for its home screen.
  const icon = `<link rel="apple-touch-icon" href="${name}/icon.png">`
  const links = manifest ? [`<link rel="manifest" href="${name}/${manifest}">`, icon] : []
  return htmlDocument(
    title,
    [...pageLinks(name, style, [script]), ...links],
    `<div id="app"></div>
<noscript>
<main class="stack plain-page">
<h1>stemwork</h1>
${paragraphs.join('\n')}
</main>
</noscript>`,
  )
}

/** The policy of a page that runs only its own script and talks only to the service. */
export function pageHeaders(call: Call, more?: PageText['policy']): Record<string, string> {
  // Links begin with `publicUrl`, which may be another origin than the one that the page came from.
  const service = new URL(call.baseUrl).origin
  const policy = [
    "default-src 'none'",
    `script-src 'self'${more ? ` ${more.script}` : ''}`,
    ...(more ? [`worker-src ${more.worker}`] : []),
    "style-src 'self'",
    "img-src 'self'",
    "manifest-src 'self'",
    // Chosen files, to read their length before they are uploaded.
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

/** The page for an address that the service does not have. */
export function notFoundPage(call: Call): ApiAnswer {
  const { console: hasConsole, docs: hasDocs } = call.service.options
  const base = escape(call.pageBase)
  const links = [
    ...(hasConsole ? [`<li><a href="${base}console">Console</a>: send songs and listen to the results</li>`] : []),
    ...(hasDocs ? [`<li><a href="${base}docs">HTTP interface</a>: its addresses, with examples</li>`] : []),
  ]
  const style = hasConsole ? 'console/console.css' : hasDocs ? 'docs/docs-style.css' : undefined
  const html = htmlDocument(
    'Not found – stemwork',
    style === undefined ? [] : [`<link rel="stylesheet" href="${base}${style}">`],
    `<header class="top"><p class="brand">stemwork</p></header>
<main class="stack plain-page">
<h1>There is nothing at this address</h1>
<p>It may be mistyped, or what was there is gone (status 404).
Addresses of this service begin with ${code(`${call.baseUrl}/`)}.</p>
${links.length > 0 ? `<ul class="stack">\n${links.join('\n')}\n</ul>\n` : ''}</main>`,
  )
  const headers = { ...pageHeaders(call), 'cache-control': 'no-store', vary: 'accept' }
  return { ...text(html, 'text/html; charset=utf-8', headers), status: 404 }
}
