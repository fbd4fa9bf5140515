import { block, code, escape, prose, table } from './docs-html.js'
import { snippetsOf } from './docs-snippets.js'
import type { OpenApiDocument, Operation } from './openapi.js'

type Schemas = OpenApiDocument['components']['schemas']

interface Context {
  base: string
  method: string
  path: string
  schemas: Schemas
}

/** One operation: its purpose, request, response, and a form to try it. */
export function operationSection(context: Context, operation: Operation): string {
  const { base, method, path, schemas } = context
  const { operationId: id, summary, description, parameters, responses } = operation
  const { schema: json, example: body } = operation.requestBody?.content['application/json'] ?? {}
  const { curl, javaScript } = snippetsOf(base, method, path, operation, body)
  return `<section class="stack part" id="${escape(id)}">
<h3>${escape(summary)}</h3>
<p class="flow"><code><span class="method ${method.toLowerCase()}">${method}</span> ${escape(path)}</code>
${access(operation)}</p>
${description ? `<p>${prose(description)}</p>` : ''}
${parameters.length > 0 ? `<h4>Parameters</h4>${parameterTable(operation)}` : ''}
${json ? `<h4>Body</h4>${fieldTable(json, schemas)}` : ''}
${tabs(id, curl, javaScript)}
${answers(responses)}
${tryForm(context, operation, body)}
</section>`
}

/** A schema in a section of its own, for links from elsewhere. */
export function schemaSection(name: string, schema: unknown, schemas: Schemas): string {
  return `<section class="stack part" id="schema-${escape(name)}">
<h3>${code(name)}</h3>
${fieldTable(schema, schemas)}
</section>`
}

function access({ security: [first] }: Operation): string {
  if (!first) return '<span class="quiet small">no key needed</span>'
  return `<span class="quiet small">${'apiKey' in first ? 'needs a key' : 'signed link, no key'}</span>`
}

function parameterTable({ parameters }: Operation): string {
  const rows = parameters.map(({ name, in: location, description, schema, required }) => [
    `${code(name)}${required ? '' : ' <span class="quiet small">optional</span>'}`,
    escape(location),
    typeText(schema),
    prose(description ?? ''),
  ])
  return table(['Name', 'In', 'Type', 'Meaning'], rows)
}

function fieldTable(schema: unknown, schemas: Schemas): string {
  const { properties, required = [] } = resolved(schema, schemas) as {
    properties?: Record<string, { description?: string }>
    required?: string[]
  }
  if (!properties) return `<p>${typeText(schema)}</p>`
  const rows = Object.entries(properties).map(([name, field]) => [
    `${code(name)}${required.includes(name) ? '' : ' <span class="quiet small">optional</span>'}`,
    typeText(field),
    prose(field.description ?? ''),
  ])
  return table(['Field', 'Type', 'Meaning'], rows)
}

function answers(responses: Operation['responses']): string {
  // Statuses are in ascending order.
  const [status = ''] = Object.keys(responses)
  const { [status]: success, ...others } = responses
  const [[type, shown] = [status, undefined]] = Object.entries(success?.content ?? {})
  const hasExample = type === 'application/json' && shown !== undefined
  const example = hasExample
    ? block(JSON.stringify(shown.example, null, 2), 'Example of the response')
    : `<p>${code(type)}</p>`
  const headers = Object.entries((success?.headers ?? {}) as Record<string, { description?: string }>).map(
    ([name, { description }]) => `<li>${code(name)}: ${prose(description ?? '')}</li>`,
  )
  return `<h4>Response</h4>
<p>${prose(success?.description ?? '')} ${shown ? typeText(shown.schema) : ''}</p>
${headers.length > 0 ? `<ul>${headers.join('')}</ul>` : ''}
${example}
${otherResponses(others)}`
}

function otherResponses(responses: Operation['responses']): string {
  const rows = Object.entries(responses).map(([status, { description }]) => [
    escape(status),
    prose(errorText(description)),
  ])
  if (rows.length === 0) return ''
  return `<details><summary>Other responses</summary>${table(['Status', 'Meaning'], rows)}</details>`
}

/** `CODE: Title. CODE: Title.` with the codes as code. */
function errorText(description: string): string {
  return description.replace(/\b([A-Z]+_[A-Z_]+|CONFLICT|FORBIDDEN|GONE|TIMEOUT|UNAUTHORIZED):/g, '`$1`:')
}

function tabs(id: string, curl: string, javaScript: string): string {
  const tab = (language: string, isFirst: boolean) =>
    `<label><input type="radio" name="language-${escape(id)}" ` +
    `value="${language}"${isFirst ? ' checked' : ''}><span>${language}</span></label>`
  return `<div class="stack tabs-of-code">
<fieldset class="segments">
<legend class="hidden">Language of the example</legend>${tab('curl', true)}${tab('JavaScript', false)}</fieldset>
<div class="curl">${block(curl, 'Example with curl')}</div>
<div class="javascript">${block(javaScript, 'Example with JavaScript')}</div>
</div>`
}

/** Placeholder for a form that the page's script builds. */
function tryForm({ method, path }: Context, operation: Operation, body: unknown): string {
  const isSigned = operation.security.some((one) => 'signedLink' in one)
  if (isSigned) return ''
  const fields = operation.parameters.map(({ name, in: location, required }) => ({ name, in: location, required }))
  const facts = { method, path, fields, body, needsKey: operation.security.length > 0 }
  return `<div class="try" data-try="${escape(JSON.stringify(facts))}" hidden></div>`
}

function typeText(schema: unknown): string {
  const { $ref, anyOf, type, items, format, ...rest } = (schema ?? {}) as Record<string, unknown>
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? ''
    return `<a href="#schema-${escape(name)}">${escape(name)}</a>`
  }
  if (Array.isArray(anyOf)) return anyOf.map(typeText).join(' or ')
  if (Array.isArray(rest.enum)) return rest.enum.map((value) => code(String(value))).join(', ')
  if (type === 'array') return `list of ${typeText(items)}`
  const usual = rest.default === undefined ? '' : `, default ${code(JSON.stringify(rest.default))}`
  const name = Array.isArray(type) ? type.join(' or ') : typeof type === 'string' ? type : 'any'
  return `${escape(name)}${typeof format === 'string' ? ` (${escape(format)})` : ''}${usual}`
}

function resolved(schema: unknown, schemas: Schemas): unknown {
  const { $ref } = (schema ?? {}) as { $ref?: string }
  return $ref === undefined ? schema : schemas[$ref.split('/').at(-1) ?? '']
}
