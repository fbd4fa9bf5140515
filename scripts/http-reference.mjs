// Prints docs/http.md and the pages in docs/http, one per resource, as JSON, from the service's OpenAPI document (npm
// run docs).
import { analyzeWorkflow, createEngine, loudnessWorkflow, stemsWorkflow, transcodeWorkflow } from '../build/index.js'
import { createHandler } from '../build/http/index.js'
import { groups } from '../build/http/service/openapi.js'

const introduction = unwrapped(`# HTTP reference

For developers of clients in any language: the reference for every route, field and error.

This page is generated from the service's OpenAPI document by \`scripts/http-reference.mjs\`. A running service shows
the same at \`/docs\` and, as data, at
\`/openapi.json\`. Paths are relative to the path of the mount, which is \`/v1\` for \`stemwork serve\`. [Getting
started](getting-started.md) walks through the
usual flow; [Embedding](embedding.md#a-client) describes a client for browsers and Node.

- **Key.** The header \`Authorization\` contains the API key as the raw value; \`Bearer <key>\` is also accepted. Links
  to files carry their own signature instead.
- **Success** is 200 with a JSON body, even for create and delete, unless the route says otherwise. **Errors** are a
  [Problem](http/schemas.md#problem), whose \`message\` can be shown to users. With
  \`Accept: application/problem+json\` it also has the members of RFC 9457.
  Any route may return 500 \`INTERNAL_ERROR\` and 503 \`STORE_UNAVAILABLE\`; routes that require a key may also return
  401 \`UNAUTHORIZED\` and 429 \`RATE_LIMITED\`.
- **Existing clients** such as \`@music.ai/sdk\` work unchanged. Its \`downloadJobResults\` accepts only links that
  begin with \`https://\`; over http it reports success but downloads
  nothing. So serve over https, and behind a proxy set \`publicUrl\` (\`--public-url\`) or \`trustProxy\`.
- **Limits** are listed in [Security](security.md#bounds). A 429 response has \`Retry-After\`; responses to
  requests with a key, and to downloads by a signed link, have \`RateLimit\` headers.
- **Webhooks** follow [Standard Webhooks](https://www.standardwebhooks.com): \`webhook-id\`, \`webhook-timestamp\` and
  \`webhook-signature\`, body
  \`{"type": "job.succeeded", "timestamp": ..., "data": {"id": ..., "status": ...}}\`, up to seven attempts over about
  18 hours; the answer 410 stops them.
  While one secret replaces another, \`webhook-signature\` contains several signatures: one match is enough.
- **The reason why a job failed** is in its \`error\`: \`code\` is \`BAD_INPUT\`, \`TIMEOUT\`, \`INTERNAL_ERROR\` or
  \`CANCELED\`; \`reason\` is one of \`download_failed\`,
  \`download_http_<status>\`, \`blocked_address\`, \`too_large\`, \`too_long\`, \`unsupported_format\`,
  \`decode_failed\`, \`no_audio\`, \`upload_missing\`, \`copy_failed\`, \`worker_lost\`, \`deadline\`.
  \`INTERNAL_ERROR\` with \`retryable: false\` means that the service is not set up for the job, and only its operator
  can help.`)

/** Unwraps text: one line for each paragraph and item, as on all pages. */
function unwrapped(text) {
  return text.replace(/(?<=\S)\n *(?=[^\s#-])/g, ' ')
}

/** Schemas whose example has been shown. */
const shownExamples = new Set()

/** Errors described once, in the introduction. */
const usualErrors = ['UNAUTHORIZED', 'RATE_LIMITED', 'INTERNAL_ERROR', 'STORE_UNAVAILABLE']

const engine = createEngine({
  workflows: [stemsWorkflow(), loudnessWorkflow(), transcodeWorkflow(), analyzeWorkflow()],
})
const answer = await createHandler(engine, { console: true, manageKeys: true, resumableUploads: true })(
  new Request('http://localhost/openapi.json'),
)
const { paths, components } = await answer.json()
await engine.close()

const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
)
const schemaNames = Object.keys(components.schemas).sort((a, b) => a.localeCompare(b))
const resources = groups.map((group) => ({
  ...group,
  own: operations.filter(({ operation }) => operation.tags[0] === group.title),
}))
const allPages = [...resources, { id: 'schemas', title: 'Schemas' }]

const contents = resources.map(({ id, title, own }) => {
  const routes = own.map(
    ({ method, path, operation }) =>
      `- [${code(`${method} ${path}`)}](http/${id}.md#${anchor(method, path)}) ${operation.summary}`,
  )
  return `### [${title}](http/${id}.md)\n\n${routes.join('\n')}`
})
const schemaLinks = schemaNames.map((name) => `[${name}](http/schemas.md#${name.toLowerCase()})`)
const made = {
  'docs/http.md': [
    introduction,
    '## Contents',
    ...contents,
    `### [Schemas](http/schemas.md)\n\n${schemaLinks.join(', ')}`,
  ],
}
for (const { id, title, own } of resources) {
  const routes = own.map(({ method, path, operation }) => section(method, path, operation))
  made[`docs/http/${id}.md`] = [...head(id, title, `the routes under "${title}"`), ...routes]
}
made['docs/http/schemas.md'] = [
  ...head('schemas', 'Schemas', 'what requests and answers contain'),
  ...schemaNames.map((name) => `## ${name}\n\n${fields(components.schemas[name]).replaceAll('(schemas.md#', '(#')}`),
]
console.log(
  JSON.stringify(Object.fromEntries(Object.entries(made).map(([page, parts]) => [page, `${parts.join('\n\n')}\n`]))),
)

/** The top of a page, with links to all others. */
function head(id, title, what) {
  const others = allPages.map((page) => (page.id === id ? `**${page.title}**` : `[${page.title}](${page.id}.md)`))
  return [
    `# HTTP: ${title.toLowerCase()}`,
    `For developers of clients in any language: the reference for ${what}.`,
    `[Overview](../http.md) · ${others.join(' · ')}`,
  ]
}

/** The anchor that GitHub generates for the heading of a route. */
function anchor(method, path) {
  return `${method} ${path}`
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-')
}

function section(method, path, { summary, description, security, parameters, requestBody, responses }) {
  const access = security.length === 0 ? 'Needs no key.' : 'signedLink' in security[0] ? 'Signed link, no key.' : ''
  // Path parameters are evident from the path.
  const rows = parameters
    .filter(({ in: location }) => location !== 'path')
    .map(({ name, in: location, description: meaning = '', schema }) => [
      code(name),
      location,
      typeText(schema),
      meaning,
    ])
  const bodies = Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema }]) => `${code(type)}: ${typeText(schema)}`,
  )
  // Statuses are in ascending order.
  const [status] = Object.keys(responses)
  const { [status]: success, ...others } = responses
  const [[type, shown] = []] = Object.entries(success.content ?? {})
  const headers = Object.entries(success.headers ?? {}).map(
    ([name, { description: meaning }]) => ` ${code(name)}: ${meaning}`,
  )
  const rest = Object.entries(others)
    .filter(([status]) => Number(status) < 400)
    .map(([status, { description: meaning }]) => ` ${status}: ${meaning}`)
  const errors = Object.entries(others).flatMap(([status, { description: meaning }]) =>
    Number(status) < 400
      ? []
      : [...meaning.matchAll(/([A-Z_]+):/g)]
          .filter(([, name]) => !usualErrors.includes(name))
          .map(([, name]) => `${status} ${code(name)}`),
  )
  return [
    `## ${code(`${method} ${path}`)}`,
    [`${summary}.`, description, access].filter(Boolean).join(' '),
    rows.length > 0 && table(['parameter', 'in', 'type', 'meaning'], rows),
    bodies.length > 0 && `Body: ${bodies.join(' or ')}`,
    example('Request', requestBody?.content['application/json']),
    `Returns: ${type === 'application/json' ? typeText(shown.schema) : type ? code(type) : status}. ` +
      `${success.description}${headers.join('')}${rest.join('')}`,
    example('Response', success.content?.['application/json']),
    errors.length > 0 && `Errors: ${errors.join(', ')}`,
  ]
    .filter(Boolean)
    .join('\n\n')
}

/** The example of a JSON body, once for each schema. */
function example(title, body) {
  if (body?.example === undefined || body.schema.type === 'array') return undefined
  const { $ref } = body.schema
  if (shownExamples.has($ref)) return undefined
  if ($ref) shownExamples.add($ref)
  return `${title}:\n\n\`\`\`json\n${JSON.stringify(body.example, null, 2)}\n\`\`\``
}

function fields({ properties = {}, required = [], ...schema }) {
  const rows = Object.entries(properties).map(([name, field]) => [
    `${code(name)}${required.includes(name) ? '' : ' (optional)'}`,
    typeText(field),
    field.description ?? '',
  ])
  return rows.length > 0 ? table(['field', 'type', 'meaning'], rows) : typeText(schema)
}

/** A JSON schema in a few words. */
function typeText(schema) {
  const { $ref, anyOf, const: only, enum: values, type, items, additionalProperties, properties, format } = schema
  if ($ref) {
    const name = $ref.split('/').at(-1)
    return `[${name}](schemas.md#${name.toLowerCase()})`
  }
  if (anyOf) return anyOf.map(typeText).join(' or ')
  if (only !== undefined) return code(only)
  if (values) return values.map(code).join(', ')
  if (type === 'array') return `list of ${typeText(items)}`
  if (properties)
    return `{ ${Object.entries(properties)
      .map(([name, field]) => `${code(name)}: ${typeText(field)}`)
      .join(', ')} }`
  if (type === 'object') return additionalProperties?.type ? `object of ${typeText(additionalProperties)}` : 'object'
  if (Array.isArray(type)) return type.map((one) => typeText({ ...schema, type: one })).join(' or ')
  return [type ?? 'anything', format && `(${format})`, bounds(schema)].filter(Boolean).join(' ')
}

function bounds({ minimum, maximum, minLength, maxLength, default: usual }) {
  const [least, most] = [minimum ?? minLength, maximum ?? maxLength]
  const unit = maxLength === undefined ? '' : ' characters'
  const range =
    most === undefined ? least !== undefined && least > 0 && `from ${least}` : `${least ?? 0} to ${most}${unit}`
  return [range, usual !== undefined && `default ${code(usual)}`].filter(Boolean).join(', ')
}

function table(heads, rows) {
  const line = (cells) =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
  return [line(heads), `|${heads.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}

function code(text) {
  return `\`${text}\``
}
