import { createHash } from 'node:crypto'
import type { OpenApiDocument, Operation } from './openapi.js'

const style = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d1d1f; background: #fff }
code, pre { font: 14px/1.45 ui-monospace, monospace }
pre { background: #f4f4f6; padding: .75rem; overflow: auto; border-radius: 6px }
section { border-top: 1px solid #d8d8de; padding: 1rem 0 }
h2 code { font-size: 1.1rem }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700 }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid #ececf0 }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #18181b }
  pre { background: #26262b }
  section, td, th { border-color: #3a3a42 }
}
`

/** The document as one page without scripts, and the policy under which it works: nothing but its own style. */
export function docsPage(document: OpenApiDocument): { html: string; policy: string } {
  const { info, components } = document
  const base = escape(document.servers[0].url)
  const sections: string[] = []
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) sections.push(section(method, path, operation))
  }
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `<section id="schema-${escape(name)}"><h3>${code(name)}</h3>${block(schema)}</section>`,
  )
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escape(info.title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escape(info.title)}</h1>
<p>${escape(info.description)}</p>
<p>Base address: <code>${base}</code>. Send the API key as the raw value of the <code>Authorization</code> header.
The same as data: <a href="${base}/openapi.json">openapi.json</a>.</p>
${sections.join('\n')}
<h2>Schemas</h2>
${schemas.join('\n')}
</body>
</html>
`
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return { html, policy }
}

function section(method: string, path: string, operation: Operation): string {
  const parameters = operation.parameters.map(({ name, in: location, description, schema }) => [
    code(name),
    escape(location),
    escape(description ?? ''),
    code(JSON.stringify(schema)),
  ])
  const bodies = Object.entries(operation.requestBody?.content ?? {}).map(
    ([type, { schema }]) => `<p>Body ${code(type)}</p>${block(schema)}`,
  )
  const answers = Object.entries(operation.responses).map(([status, { description, content }]) => {
    const [type, shown] = Object.entries(content ?? {})[0] ?? ['', undefined]
    return [escape(status), escape(description), `${code(type)} ${reference(shown?.schema)}`]
  })
  return `<section id="${escape(operation.operationId)}">
<h2><code><span class="method">${method.toUpperCase()}</span> ${escape(path)}</code></h2>
<p>${escape(operation.summary)}.${operation.description ? ` ${escape(operation.description)}` : ''}</p>
${parameters.length > 0 ? table(['Parameter', 'In', 'Meaning', 'Schema'], parameters) : ''}
${bodies.join('')}
${table(['Status', 'Meaning', 'Body'], answers)}
</section>`
}

function table(heads: readonly string[], rows: readonly string[][]): string {
  const head = heads.map((text) => `<th>${text}</th>`).join('')
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n')
  return `<table><tr>${head}</tr>\n${body}</table>`
}

function reference(schema: Record<string, unknown> | undefined): string {
  const name = /"#\/components\/schemas\/(\w+)"/.exec(JSON.stringify(schema ?? {}))?.[1]
  return name ? `<a href="#schema-${name}">${schema?.type === 'array' ? `array of ${name}` : name}</a>` : ''
}

function code(text: string): string {
  return `<code>${escape(text)}</code>`
}

function block(schema: unknown): string {
  return `<pre>${escape(JSON.stringify(schema, null, 2))}</pre>`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
