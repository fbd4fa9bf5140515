import { type ApiAnswer, text } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { code, escape, htmlDocument } from './docs-html.js'
import { pageHeaders } from './page.js'

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
