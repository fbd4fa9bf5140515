import { escape, htmlDocument, pageLinks } from './docs-html.js'
import { operationSection, schemaSection } from './docs-operation.js'
import { groups, type OpenApiDocument, type Operation } from './openapi.js'

/**
 * The document as a page with forms to try it. Its script and style are parts of the service, like those of the
 * console.
 */
export function docsPage(document: OpenApiDocument, options: { hasConsole: boolean }): string {
  const { info, components } = document
  const base = document.servers[0].url
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const shown = groups.map((group) => ({
    ...group,
    operations: operations.filter(({ operation }) => operation.tags[0] === group.title),
  }))
  const contents = shown.map(
    ({ id, title, operations: own }) =>
      `<li><a href="#${id}">${title}</a><ul>${own.map(({ operation }) => entry(operation)).join('')}</ul></li>`,
  )
  const sections = shown.map(({ id, title, operations: own }) => {
    const each = own.map(({ method, path, operation }) =>
      operationSection({ base, method, path, schemas: components.schemas }, operation),
    )
    return `<h2 id="${id}">${title}</h2>\n${each.join('\n')}`
  })
  const schemas = Object.entries(components.schemas)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, schema]) => schemaSection(name, schema, components.schemas))
  return htmlDocument(
    `${info.title} – HTTP interface`,
    pageLinks('docs', 'docs-style.css', ['docs.js']),
    `<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<p class="brand">stemwork <span class="quiet">HTTP interface</span></p>
<nav aria-label="Pages">
${options.hasConsole ? '<a href="console">Console</a>' : ''}<a href="openapi.json">openapi.json</a></nav>
</header>
<div class="columns">
<nav class="contents" aria-label="Contents">
<details open><summary>Contents</summary>
<ul><li><a href="#main">Overview</a></li>${contents.join('\n')}<li><a href="#schemas">Schemas</a></li></ul>
</details>
</nav>
<main class="stack" id="main" tabindex="-1">
<h1>${escape(info.title)}</h1>
<p class="quiet">${escape(info.description)}</p>
<section class="card" aria-label="Address and key">
<p>Address of the service: <code>${escape(base)}</code></p>
<p>Send your API key as the raw value of the <code>Authorization</code> header. A successful request
returns status 200 with a JSON body. A failed one returns a <a href="#schema-Problem">Problem</a>, whose
<code>message</code> you can show to users.</p>
<div id="key-form" hidden></div>
<noscript><p>Turn on JavaScript to send requests from this page.</p></noscript>
</section>
${sections.join('\n')}
<h2 id="schemas">Schemas</h2>
${schemas.join('\n')}
</main>
</div>`,
  )
}

function entry({ operationId, summary }: Operation): string {
  return `<li><a href="#${escape(operationId)}">${escape(summary)}</a></li>`
}
