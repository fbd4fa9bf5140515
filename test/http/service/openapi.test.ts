import { liveService } from '../../../src/live.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { notesWorkflow } from '../../../src/core/workflows/notes/notes-workflow.js'
import { practiceWorkflow } from '../../../src/core/workflows/practice/practice-workflow.js'
import { analyzeWorkflow } from '../../../src/core/workflows/analysis/analyze-workflow.js'
import { loudnessWorkflow } from '../../../src/core/workflows/loudness/loudness-workflow.js'
import { transcodeWorkflow } from '../../../src/core/workflows/transcode/transcode-workflow.js'
import { stemsWorkflow } from '../../../src/core/workflows/separation/stems-workflow.js'
import { createEngine } from '../../../src/create-engine.js'
import { createHandler } from '../../../src/http/handler.js'
import type { OpenApiDocument, Operation } from '../../../src/http/service/openapi.js'
import { problemTypes } from '../../../src/http/routing/problem.js'
import type { DescribedRoute, Route } from '../../../src/http/routing/route.js'
import { allRoutes } from '../../../src/http/routes.js'
import { consoleRoutes } from '../../../src/http/service/console.js'
import { jobViewSchema, newJobSchema } from '../../../src/http/schemas.js'
import { pollJob, type Service, serviceOfTest, startService } from '../harness.js'

const described = allRoutes({ docs: true, console: true, manageKeys: true, resumableUploads: true, live: true }).filter(
  (route) => !consoleRoutes.includes(route),
)
let service: Service
let document: OpenApiDocument
let operations: [path: string, method: string, operation: Operation][]
beforeAll(async () => {
  service = await startService({
    http: { console: true, manageKeys: true, resumableUploads: true, live: { separate: liveService() } },
  })
  document = (await (await fetch(`${service.base}/openapi.json`)).json()) as OpenApiDocument
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, string, Operation] => [path, method, operation]),
  )
})
afterAll(() => service.close())

test('the document is OpenAPI 3.1 and names the address at which it was requested', () => {
  expect(document.openapi).toBe('3.1.0')
  expect(document.servers).toEqual([{ url: service.base }])
})

test('every route of the table is in it, under a unique name', () => {
  const written = operations.map(([path, method]) => `${method.toUpperCase()} ${path}`).sort()
  const known = described
    .filter(({ operation }) => operation !== 'getDocsAsset')
    .map((route) => `${route.method} ${route.path.replace(/(?:\*\*)?:(\w+)/g, '{$1}')}`)
    .sort()
  expect(written).toEqual(known)
  const names = operations.map(([, , operation]) => operation.operationId)
  expect(new Set(names).size).toBe(names.length)
})

test('every reference leads to a schema, and every schema is used', () => {
  const referred = new Set(
    Array.from(JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g), ([, target = '']) => target),
  )
  expect([...referred].sort()).toEqual(
    Object.keys(document.components.schemas)
      .map((name) => `#/components/schemas/${name}`)
      .sort(),
  )
})

test('the document states what is refused: missing params, unknown fields, missing filters, forms', () => {
  const parameter = (id: string, name: string) =>
    operations.find(([, , { operationId }]) => operationId === id)?.[2].parameters.find((one) => one.name === name)
  expect(parameter('getBatch', 'name')?.required).toBe(true)
  expect(parameter('listJobs', 'size')?.required).toBe(false)
  expect(parameter('createJob', 'Idempotency-Key')?.schema).toMatchObject({ maxLength: 255, pattern: '^[!-~]+$' })
  const { JobFilter: filter, WebhookSecretRequest: secret } = document.components.schemas
  expect(filter).toMatchObject({ additionalProperties: false, else: { not: {} } })
  expect(filter?.if).toMatchObject({ anyOf: expect.arrayContaining([{ required: ['all'] }]) })
  expect(JSON.stringify(secret)).toContain('^whsec_')
})

test('the examples of requests name a workflow that the service has', async () => {
  const engine = createEngine({ workflows: [loudnessWorkflow()] })
  const answer = await createHandler(engine)(new Request('http://localhost/openapi.json'))
  const { paths } = (await answer.json()) as OpenApiDocument
  await engine.close()
  const example = (path: string) => paths[path]?.post?.requestBody?.content['application/json']?.example
  expect(example('/job')).toMatchObject({ workflow: 'service/loudness', params: { inputUrl: expect.any(String) } })
  expect(example('/batch')).toMatchObject({ jobs: [{ workflow: 'service/loudness' }] })
})

test('the params of every workflow are described, as what the params of a new job may be', async () => {
  const engine = createEngine({ workflows: [loudnessWorkflow()] })
  const answer = await createHandler(engine)(new Request('http://localhost/openapi.json'))
  const described = (await answer.json()) as OpenApiDocument
  await engine.close()
  const { ServiceLoudnessParams: params, JobRequest: newJob } = described.components.schemas
  expect(params).toMatchObject({
    required: ['inputUrl'],
    properties: { ceiling: { default: -1, minimum: -30, maximum: 0 }, picture: { type: 'boolean' } },
  })
  expect(newJob).toMatchObject({
    properties: { params: { anyOf: [{ $ref: '#/components/schemas/ServiceLoudnessParams' }, { type: 'object' }] } },
  })
})

test('the params of every workflow have an example that the workflow accepts', async () => {
  const audio = [stemsWorkflow(), loudnessWorkflow(), transcodeWorkflow(), analyzeWorkflow(), notesWorkflow()]
  const workflows = [...audio, practiceWorkflow()]
  const engine = createEngine({ workflows })
  const answer = await createHandler(engine)(new Request('http://localhost/openapi.json'))
  const { schemas } = ((await answer.json()) as OpenApiDocument).components
  await engine.close()
  const examples = Object.entries(schemas).flatMap(([name, { examples }]) =>
    name.endsWith('Params') ? (examples as unknown[]) : [],
  )
  expect(examples).toHaveLength(workflows.length)
  workflows.forEach(({ params }, index) => expect(params.safeParse(examples[index]).error).toBeUndefined())
})

test('every JSON body that is sent or returned has an example, with the address of the service', () => {
  const bodies = operations.flatMap(([path, method, { requestBody, responses }]) =>
    [requestBody?.content, responses[200]?.content].flatMap((content) => {
      const json = content?.['application/json']
      return json ? [{ route: `${method} ${path}`, ...json }] : []
    }),
  )
  expect(bodies.length).toBeGreaterThan(20)
  expect(bodies.filter(({ example }) => example === undefined)).toEqual([])
  expect(JSON.stringify(document)).not.toContain('{base}')
  expect(bodies.find(({ route }) => route === 'get /upload')?.example).toMatchObject({
    uploadUrl: expect.stringContaining(`${service.base}/storage/`),
  })
})

test('the example of every JSON body that is sent passes the check of its route', () => {
  const routes = described.filter(({ body }) => body !== undefined)
  expect(routes.length).toBeGreaterThan(5)
  for (const route of routes) {
    const { requestBody } = operations.find(([, , { operationId }]) => operationId === route.operation)?.[2] ?? {}
    const result = route.body?.safeParse(requestBody?.content['application/json']?.example)
    expect({ route: route.path, problem: result?.error?.message }).toEqual({ route: route.path, problem: undefined })
  }
})

test('the example of every JSON body that is returned fits the schema of its route', () => {
  const isDescribed = (route: Route): route is DescribedRoute => 'answer' in route
  const routes = described.filter(isDescribed).filter(({ answer }) => answer.schema !== undefined)
  expect(routes.length).toBeGreaterThan(20)
  for (const { operation: id, answer } of routes) {
    const { responses } = operations.find(([, , { operationId }]) => operationId === id)?.[2] ?? {}
    const result = answer.schema?.safeParse(responses?.['200']?.content?.['application/json']?.example)
    expect({ id, problem: result?.error?.message }).toEqual({ id, problem: undefined })
  }
})

test('every path parameter is declared', () => {
  for (const [path, , operation] of operations) {
    const declared = operation.parameters
      .filter((parameter) => parameter.in === 'path')
      .map((parameter) => parameter.name)
    expect(declared).toEqual(Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name))
  }
})

test('generated clients know what every body is: files are bytes, parts of them too, texts are texts', () => {
  const bodies = operations.flatMap(([, , { operationId, requestBody, responses }]) =>
    [requestBody, responses[200], responses[206]].flatMap((body) =>
      Object.entries(body?.content ?? {}).map(([type, { schema }]) => ({ operationId, type, schema })),
    ),
  )
  expect(bodies.filter(({ schema }) => Object.keys(schema).length === 0)).toEqual([])
  const isBytes = ({ type }: { type: string }) => /octet-stream|zip/.test(type)
  for (const { schema } of bodies.filter(isBytes)) expect(schema).toEqual({ type: 'string', format: 'binary' })
  expect(bodies.filter(isBytes).map(({ operationId }) => operationId)).toEqual([
    'uploadFile',
    'downloadFile',
    'downloadFile',
    'createResumableUpload',
    'continueResumableUpload',
    'downloadArchive',
    'getGrowingResult',
    'getGrowingResult',
    'getGrowingPeaks',
    'getGrowingPeaks',
  ])
  for (const { schema } of bodies.filter(({ type }) => type.startsWith('text/'))) expect(schema.type).toBe('string')
})

test('clients that openapi-generator makes compile', async () => {
  const transcode = createEngine({ workflows: [transcodeWorkflow()] })
  const answer = await createHandler(transcode)(new Request('http://localhost/openapi.json'))
  const { schemas } = ((await answer.json()) as OpenApiDocument).components
  await transcode.close()
  // Go: `NewJob` would be the type and the constructor of `Job`.
  const names = Object.keys({ ...schemas, ...document.components.schemas })
  expect(names.filter((name) => names.includes(name.replace(/^New/, '')) && name.startsWith('New'))).toEqual([])
  // Java: a type `number` becomes a decimal, of which there are no constants, and a truth value has none.
  expect(document.components.schemas.Peaks?.properties).toMatchObject({ version: { type: 'integer', const: 2 } })
  expect(schemas.ServiceTranscodeParams?.properties).toMatchObject({ channels: { type: 'integer', enum: [1, 2] } })
  const all = { type: 'boolean', not: { const: false }, description: expect.any(String) }
  expect(document.components.schemas.JobFilter?.properties).toEqual(expect.objectContaining({ all }))
  // Java and TypeScript: a form that is not the first kind of a body is imported and not written.
  const upload = document.paths['/storage/{file}']?.put?.requestBody?.content
  expect(Object.keys(upload ?? {})).toEqual(['multipart/form-data', 'application/octet-stream'])
})

test('every operation has the tag of its resource', () => {
  const known = document.tags.map(({ name }) => name)
  expect(known).toEqual(['Files', 'Jobs', 'Batches', 'Workflows', 'Application and keys', 'Service'])
  expect(new Set(operations.map(([, , { tags }]) => tags[0]))).toEqual(new Set(known))
  expect(document.paths['/job/{id}/events']?.get?.tags).toEqual(['Jobs'])
})

test('the answers of the resumable upload are in its headers, and have no body', () => {
  const headersOf = (method: string, status: number) => {
    const path = method === 'post' ? '/upload/resumable' : '/upload/resumable/{id}'
    const answer = document.paths[path]?.[method]?.responses[status]
    expect(answer?.content).toBeUndefined()
    return Object.keys(answer?.headers ?? {})
  }
  expect(headersOf('post', 201)).toEqual(['Location', 'Download-Url'])
  expect(headersOf('get', 200)).toEqual(['Upload-Offset', 'Upload-Length', 'Download-Url'])
  expect(headersOf('patch', 204)).toEqual(['Upload-Offset'])
})

test('the params of the jobs of a batch are described like those of a single job', () => {
  const params = (name: string) => (document.components.schemas[name]?.properties as { params?: unknown })?.params
  expect(params('BatchJobRequest')).toEqual(params('JobRequest'))
  expect(document.components.schemas.BatchRequest?.properties).toMatchObject({
    jobs: { items: { $ref: '#/components/schemas/BatchJobRequest' } },
  })
})

test('every code of the contract is described somewhere', () => {
  const text = JSON.stringify(document.paths)
  const everywhere = ['METHOD_NOT_ALLOWED', 'EXPECTATION_FAILED', 'HEADERS_TOO_LARGE']
  expect(Object.keys(problemTypes).filter((code) => !everywhere.includes(code) && !text.includes(`${code}: `))).toEqual(
    [],
  )
})

test('the fields of the specification are all in the job, always present', () => {
  const job = document.components.schemas.Job as { required: string[] }
  const specified = [
    'id',
    'name',
    'status',
    'workflow',
    'workflowParams',
    'result',
    'createdAt',
    'startedAt',
    'completedAt',
  ]
  expect(job.required).toEqual(expect.arrayContaining(specified))
})

test('a job that the service shows has exactly the described fields', async () => {
  service.release()
  const id = await service.created()
  for (const job of [await pollJob(service, id, () => true), await pollJob(service, id)])
    expect(jobViewSchema.strict().parse(job)).toEqual(job)
})

test('the page shows every route with an example, and may load nothing but its own parts', async () => {
  const answer = await fetch(`${service.base}/docs`)
  const html = await answer.text()
  for (const [path, method] of operations)
    expect(html).toContain(`${method}">${method.toUpperCase()}</span> ${path}</code>`)
  expect(html.match(/aria-label="Example with curl"/g)).toHaveLength(operations.length)
  expect(html).not.toMatch(/<style|style="|<script>|\son\w+=|\{base\}/)
  const addresses = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, address = '']) => address)
  for (const address of new Set(addresses)) expect((await fetch(new URL(address, answer.url))).status).toBe(200)
  const policy = answer.headers.get('content-security-policy')
  expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /)
  expect(policy).toContain("require-trusted-types-for 'script'")
})

test('examples on the page pass the schemas that they are examples of', async () => {
  const html = await (await fetch(`${service.base}/docs`)).text()
  const body = /<section class="[^"]*" id="createJob".*?data-try="([^"]*)"/s.exec(html)?.[1] ?? ''
  const facts = JSON.parse(body.replaceAll('&quot;', '"').replaceAll('&amp;', '&')) as { body: unknown }
  expect(newJobSchema.parse(facts.body)).toEqual(facts.body)
})

test('both can be turned off', async () => {
  const silent = await serviceOfTest({ http: { docs: false } })
  for (const path of ['/docs', '/openapi.json']) expect((await fetch(silent.base + path)).status).toBe(404)
})

test('is built for one client at a time, and 50 wait: anyone may request it under any address', async () => {
  const handler = createHandler(createEngine(), { trustProxy: true })
  const ask = async (n: number, client: string) => {
    const headers = { 'x-forwarded-for': client }
    return (await handler(new Request(`http://host-${n}.example/openapi.json`, { headers }))).status
  }
  const asked = Array.from({ length: 500 }, (_, n) => ask(n, '192.0.2.1'))
  await new Promise<void>((resolve) => {
    for (const each of asked) void each.then((status) => status === 429 && resolve())
  })
  // While one client requests more, another requests a document that others await, and one of its own.
  expect(await Promise.all([ask(50, '192.0.2.2'), ask(500, '192.0.2.2')])).toEqual([200, 200])
  expect(new Set(await Promise.all(asked))).toEqual(new Set([200, 429]))
  expect(await ask(499, '192.0.2.1')).toBe(200)
})
