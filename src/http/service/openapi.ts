import { z } from 'zod'
import { problemTypes } from '../routing/problem.js'
import type { DescribedRoute } from '../routing/route.js'
import { problemSchema } from '../schemas.js'
import { exampleOf } from './docs-examples.js'
import { compilable } from './workflow-view.js'

type JsonObject = Record<string, unknown>

export interface Operation {
  operationId: string
  tags: [string]
  summary: string
  description?: string
  security: JsonObject[]
  parameters: { name: string; in: string; required?: boolean; description?: string; schema: JsonObject }[]
  requestBody?: { required: boolean; content: Record<string, MediaType> }
  responses: Record<string, { description: string; headers?: JsonObject; content?: Record<string, MediaType> }>
}

interface MediaType {
  schema: JsonObject
  example?: unknown
}

export interface OpenApiDocument {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string }
  servers: [{ url: string }]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, JsonObject>; securitySchemes: JsonObject }
}

interface Group {
  id: string
  title: string
  /** Prefixes of the paths that belong to it. */
  paths: readonly string[]
}

/** The operations by resource: tags of the document, chapters of `/docs` and pages of the HTTP reference. */
export const groups: readonly Group[] = [
  { id: 'files', title: 'Files', paths: ['/upload', '/storage', '/archive'] },
  { id: 'jobs', title: 'Jobs', paths: ['/job'] },
  { id: 'batches', title: 'Batches', paths: ['/batch'] },
  { id: 'workflows', title: 'Workflows', paths: ['/workflow'] },
  { id: 'application', title: 'Application and keys', paths: ['/application'] },
  { id: 'service', title: 'Service', paths: ['/'] },
]

/** Workflows with the schemas of their params. */
type Described = readonly { id: string; params: JsonObject }[]

/**
 * The OpenAPI 3.1 document of a route table: the schemas that check requests, with the params of the workflows.
 * `servers` is left to the caller, as is the address of the service, `{base}` in examples.
 */
export function openApiDocument(
  routes: readonly DescribedRoute[],
  workflows: Described,
): Omit<OpenApiDocument, 'servers'> {
  const schemas = new Components()
  const paths: OpenApiDocument['paths'] = {}
  for (const route of routes) {
    const path = route.path.replace(/(?:\*\*)?:([A-Za-z]+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, schemas) }
  }
  describeParams(schemas.all, workflows)
  for (const operations of Object.values(paths))
    for (const each of Object.values(operations)) addExamples(each, schemas, workflows)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Media processing jobs',
      version: '1',
      description:
        'Submit a job that runs a workflow on a media file, follow it, download the results, and delete it. If the ' +
        'file has no public URL, upload it first.',
    },
    tags: groups.map(({ title }) => ({ name: title })),
    paths,
    components: {
      schemas: schemas.all,
      securitySchemes: {
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'The API key as the raw value, without a scheme.',
        },
        signedLink: {
          type: 'apiKey',
          in: 'query',
          name: 'signature',
          description: 'Part of the links that the service returns; use them unchanged.',
        },
      },
    },
  }
}

/** Describes the params of new jobs: those of each workflow here, or any object, for workflows that describe none. */
function describeParams(schemas: Record<string, JsonObject>, workflows: Described): void {
  const newJobs = [schemas.JobRequest, schemas.BatchJobRequest].filter((schema) => schema !== undefined)
  if (newJobs.length === 0) return
  const known = workflows
    .filter(({ params }) => params.properties !== undefined)
    .map(({ id, params: { $schema: _dialect, ...params } }) => {
      const words = id.split(/[^A-Za-z0-9]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1))
      const name = `${words.join('')}Params`
      schemas[name] = { ...params, description: `The params of ${id}.`, examples: [exampleOf(params, schemas)] }
      return { $ref: `#/components/schemas/${name}` }
    })
  for (const { properties } of newJobs as { properties: JsonObject }[])
    properties.params = { description: 'The params of the workflow.', anyOf: [...known, { type: 'object' }] }
}

/** Adds examples of the JSON in requests and in successful responses. */
function addExamples({ requestBody, responses }: Operation, schemas: Components, workflows: Described): void {
  const { 200: success } = responses
  for (const content of [requestBody?.content, success?.content]) {
    const json = content?.['application/json']
    if (json) json.example = offered(exampleOf(json.schema, schemas.all), schemas.all, workflows)
  }
}

/** Returns the example with a workflow that this service has, and its params, in place of one that it lacks. */
function offered(example: unknown, schemas: Record<string, JsonObject>, workflows: Described): unknown {
  if (typeof example !== 'object' || example === null) return example
  if (Array.isArray(example)) return example.map((one) => offered(one, schemas, workflows))
  const { workflow, params } = example as JsonObject
  const [first] = workflows
  if (first && typeof workflow === 'string' && params && !workflows.some(({ id }) => id === workflow))
    return { ...example, workflow: first.id, params: exampleOf(first.params, schemas) }
  return Object.fromEntries(Object.entries(example).map(([name, value]) => [name, offered(value, schemas, workflows)]))
}

/** Bytes, by the keyword from which generated clients know that a body is no text. */
const file = { type: 'string', format: 'binary' }

function operation(route: DescribedRoute, schemas: Components): Operation {
  const { answer, otherAnswers = {} } = route
  const { contentType = 'application/json' } = answer
  const bytes = contentType.startsWith('text/') ? { type: 'string' } : file
  const schema = answer.schema ? schemas.use(answer.schema, 'output') : bytes
  const content = answer.status === undefined ? { content: { [contentType]: { schema }, ...answer.otherContent } } : {}
  return {
    operationId: route.operation,
    tags: [tagOf(route.path)],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: route.access === 'open' ? [] : [{ [route.access === 'key' ? 'apiKey' : 'signedLink']: [] }],
    parameters: [...pathParameters(route), ...queryParameters(route, schemas), ...headerParameters(route)],
    ...requestBody(route, schemas),
    responses: {
      [answer.status ?? 200]: {
        description: answer.description,
        ...(answer.headers && { headers: responseHeaders(answer.headers) }),
        ...content,
      },
      ...Object.fromEntries(
        Object.entries(otherAnswers).map(([status, description]) => [
          status,
          { description, ...(status === '206' && content) },
        ]),
      ),
      ...problemResponses(route, schemas),
    },
  }
}

function tagOf(path: string): string {
  return groups.find(({ paths }) => paths.some((start) => path.startsWith(start)))?.title ?? ''
}

function responseHeaders(headers: Record<string, string>): JsonObject {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )
}

function pathParameters(route: DescribedRoute): Operation['parameters'] {
  return Array.from(route.path.matchAll(/[:*]([A-Za-z]+)/g), ([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters(route: DescribedRoute, schemas: Components): Operation['parameters'] {
  if (!route.query) return []
  const { properties, required = [] } = schemas.use(route.query, 'output') as {
    properties: Record<string, JsonObject>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name) && schema.default === undefined,
    ...(typeof description === 'string' ? { description } : {}),
    schema,
  }))
}

function headerParameters(route: DescribedRoute): Operation['parameters'] {
  return Object.entries(route.requestHeaders ?? {}).map(([name, facts]) => {
    const {
      description,
      schema,
      required = false,
    } = typeof facts === 'string' ? { description: facts, schema: { type: 'string' } } : facts
    return { name, in: 'header', required, description, schema }
  })
}

function requestBody(route: DescribedRoute, schemas: Components): Pick<Operation, 'requestBody'> | undefined {
  if (route.body)
    return {
      requestBody: { required: true, content: { 'application/json': { schema: schemas.use(route.body, 'input') } } },
    }
  if (!route.rawBody) return undefined
  const form = { type: 'object', required: ['filedata'], properties: { filedata: file } }
  return {
    requestBody: {
      required: !route.isBodyOptional,
      content: Object.fromEntries(
        route.rawBody.map((type) => [type, { schema: type.startsWith('multipart/') ? form : file }]),
      ),
    },
  }
}

/** Codes that share a status share a response. */
function problemResponses(route: DescribedRoute, schemas: Components): Operation['responses'] {
  const codes = [
    ...(route.problems ?? []),
    ...(route.access === 'key' ? (['UNAUTHORIZED', 'RATE_LIMITED'] as const) : []),
    'INTERNAL_ERROR' as const,
    'STORE_UNAVAILABLE' as const,
  ]
  if (route.query || route.body) codes.push('BAD_INPUT')
  if (route.body) codes.push('UNSUPPORTED_MEDIA_TYPE', 'TOO_LARGE')
  const responses: Operation['responses'] = {}
  for (const code of [...new Set(codes)].sort((a, b) => problemTypes[a].status - problemTypes[b].status)) {
    const { status, title } = problemTypes[code]
    const known = responses[status]?.description
    const schema = schemas.use(problemSchema, 'output')
    responses[status] = {
      description: known ? `${known} ${code}: ${title}.` : `${code}: ${title}.`,
      content: { 'application/json': { schema }, 'application/problem+json': { schema } },
    }
  }
  return responses
}

/** Schemas with a name are written once and referred to. */
class Components {
  readonly all: Record<string, JsonObject> = {}

  use(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
    const {
      $schema: _dialect,
      $defs,
      ...written
    } = z.toJSONSchema(schema, {
      io,
      target: 'draft-2020-12',
      override: ({ jsonSchema }) => simplify(jsonSchema, io),
    }) as JsonObject & {
      $defs?: Record<string, JsonObject>
    }
    for (const [id, definition] of Object.entries($defs ?? {})) this.all[id] = referToComponents(withoutId(definition))
    const own = referToComponents(withoutId(written))
    const { id } = z.globalRegistry.get(schema) ?? {}
    if (typeof id !== 'string') return own
    if (typeof own.$ref === 'string') return own
    this.all[id] = own
    return { $ref: `#/components/schemas/${id}` }
  }
}

/** Leaves out keywords that do not help a reader, or would prevent the service from adding fields. */
function simplify(jsonSchema: JsonObject, io: 'input' | 'output'): void {
  compilable(jsonSchema)
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
}

function withoutId({ id: _id, $id: _url, ...schema }: JsonObject): JsonObject {
  return schema
}

function referToComponents(value: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', '"#/components/schemas/')) as JsonObject
}
