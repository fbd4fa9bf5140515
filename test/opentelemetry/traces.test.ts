import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import { Pool } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { postgresQueue, postgresStores } from '../../src/adapters/postgres.js'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { createHandler } from '../../src/http/index.js'
import { memoryQueue } from '../../src/adapters/memory.js'
import { createEngine, type EngineParts, type JobEngine, silentLogger } from '../../src/index.js'
import { openTelemetry } from '../../src/opentelemetry/index.js'
import { findPostgres } from '../servers/postgres.js'

interface SpanFacts {
  name: string
  kind: SpanKind
  attributes: Record<string, unknown>
  status: SpanStatusCode
  error: string | undefined
  parent: string | undefined
  trace: string
  id: string
}

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const folder = mkdtempSync(join(tmpdir(), 'stemwork-traces-'))
const worker = new URL('./fixtures/worker.mjs', import.meta.url).pathname
// Not loaded with the test's own modules: the fixture is the module that a child imports.
const { default: twoStages, id: workflow } = (await import(
  new URL('./fixtures/workflow.mjs', import.meta.url).href
)) as {
  default: () => EngineParts['workflows'][number]
  id: string
}
const { spanFacts } = (await import(new URL('./fixtures/span-facts.mjs', import.meta.url).href)) as {
  spanFacts(span: ReadableSpan): SpanFacts
}
const postgres = await findPostgres()
const missing = 'missing' in postgres ? postgres.missing : undefined
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
/** Span of the client, which is outside this test. */
const client = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' }
const traceparent = `00-${client.trace}-${client.span}-01`

beforeAll(() => provider.register())
afterEach(() => exporter.reset())
afterAll(async () => {
  await provider.shutdown()
  trace.disable()
  context.disable()
  rmSync(folder, { recursive: true, force: true })
})

function ownSpans(): SpanFacts[] {
  return exporter.getFinishedSpans().map(spanFacts)
}

/** A receiver of one webhook message. */
async function receiver() {
  const server = createServer((request, response) => response.writeHead(204).end(() => server.emit('message', request)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const received = once(server, 'message').then(([request]) => (request as IncomingMessage).headers)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/done`,
    received,
    close: () => server.close(),
  }
}

function startWorker(settings: Record<string, string>) {
  const child = spawn(process.execPath, [worker, JSON.stringify({ ...settings, secret })], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (data: Buffer) => (output += String(data)))
  return {
    pid: child.pid,
    ready: once(child.stdout, 'data'),
    /** Ends the process; returns its recorded spans. */
    async end(): Promise<SpanFacts[]> {
      child.stdin.end()
      await once(child, 'close')
      return JSON.parse(output.split('\n')[1] ?? '') as SpanFacts[]
    },
  }
}

async function post<Answer>(engine: JobEngine, path: string, body: unknown): Promise<Answer> {
  const handler = createHandler(engine, { anonymous: { id: 'app', name: 'App' } })
  const response = await handler(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent, tracestate: 'vendor=1' },
      body: JSON.stringify(body),
    }),
  )
  expect(response.status).toBe(200)
  return (await response.json()) as Answer
}

async function submit(engine: JobEngine, hook: string, params = {}): Promise<string> {
  const job = { name: 'traced', workflow, params, webhook: { url: hook } }
  return (await post<{ id: string }>(engine, '/job', job)).id
}

function submitBatch(engine: JobEngine, hook: string): Promise<{ name: string; ids: string[] }> {
  const job = { name: 'traced', workflow, params: {} }
  return post(engine, '/batch', { name: 'album', jobs: [job, job], webhook: { url: hook } })
}

/** The names of the spans from a span up to the client's. */
function pathOf(span: SpanFacts, all: SpanFacts[]): string[] {
  const names = [span.name]
  for (let at = span; at.parent !== client.span;) {
    const parent = all.find(({ id }) => id === at.parent)
    if (!parent) return [...names, 'nowhere']
    names.push(parent.name)
    at = parent
  }
  return names
}

function api(parts: Partial<EngineParts>): JobEngine {
  return createEngine({
    ...parts,
    workflows: [twoStages()],
    tracing: openTelemetry(),
    fetch: { allowPrivate: true },
    webhooks: { secret },
    logger: silentLogger,
  })
}

describe('a job is one trace', () => {
  const expected = [
    ['POST /job'],
    [`submit ${workflow}`, 'POST /job'],
    [`process ${workflow}`, `submit ${workflow}`, 'POST /job'],
    ['fetch', `process ${workflow}`, `submit ${workflow}`, 'POST /job'],
    ['run', `process ${workflow}`, `submit ${workflow}`, 'POST /job'],
    ['stage think', 'run', `process ${workflow}`, `submit ${workflow}`, 'POST /job'],
    ['stage write', 'run', `process ${workflow}`, `submit ${workflow}`, 'POST /job'],
    ['publish', `process ${workflow}`, `submit ${workflow}`, 'POST /job'],
    ['POST webhook', `submit ${workflow}`, 'POST /job'],
  ]

  test('from request to webhook: one process accepts the job, the next runs it in a child (SQLite)', async () => {
    const hook = await receiver()
    const sqlite = join(folder, 'jobs.db')
    const stores = sqliteStores({ path: sqlite })
    const blobs = join(folder, 'blobs')
    const { jobs, applications } = stores
    const engine = api({ jobs, applications, blobs: fsBlobs({ directory: blobs }), queue: memoryQueue() })
    const id = await submit(engine, hook.url)
    await engine.close()
    stores.close()

    const other = startWorker({ sqlite, blobs })
    const headers = await hook.received
    const theirs = await other.end()
    hook.close()

    const all = [...ownSpans(), ...theirs]
    expect(all.map((span) => pathOf(span, all))).toEqual(expect.arrayContaining(expected))
    expect(all).toHaveLength(expected.length)
    expect(new Set(all.map((span) => span.trace))).toEqual(new Set([client.trace]))
    // Spans recorded by this process.
    expect(ownSpans()).toHaveLength(2)

    const find = (name: string) => all.find((span) => span.name === name)
    expect(find('POST /job')).toMatchObject({
      kind: SpanKind.SERVER,
      attributes: { 'http.request.method': 'POST', 'http.route': '/job', 'http.response.status_code': 200 },
    })
    const message = {
      'messaging.system': 'stemwork',
      'messaging.destination.name': workflow,
      'messaging.message.id': id,
      'stemwork.app': 'app',
    }
    expect(find(`submit ${workflow}`)).toMatchObject({ kind: SpanKind.PRODUCER, attributes: message })
    expect(find(`process ${workflow}`)).toMatchObject({
      kind: SpanKind.CONSUMER,
      attributes: { ...message, 'messaging.operation.type': 'process', 'stemwork.job.status': 'SUCCEEDED' },
    })
    // The receiver continues below the span of the call.
    const call = find('POST webhook')
    expect(call).toMatchObject({ kind: SpanKind.CLIENT, attributes: { 'http.response.status_code': 204 } })
    expect(headers).toMatchObject({ traceparent: `00-${client.trace}-${call?.id}-01`, tracestate: 'vendor=1' })

    const again = sqliteStores({ path: sqlite })
    const job = await again.jobs.get(id)
    again.close()
    const output = await fsBlobs({ directory: blobs }).get(job?.outputs?.trace?.key ?? '')
    let text = ''
    for await (const chunk of output?.body ?? []) text += Buffer.from(chunk).toString()
    // The stage ran in a third process, and knew its trace context.
    const [place, pid] = text.split(' ')
    expect(place).toBe(`00-${client.trace}-${find('run')?.id}-01`)
    expect([process.pid, other.pid]).not.toContain(Number(pid))
  })

  const unless = missing ? `: ${missing}` : ''
  test.skipIf(missing !== undefined)(
    `with a worker beside the service; a failure is an error of each span it passed (Postgres)${unless}`,
    async () => {
      if ('missing' in postgres) return
      const schema = `test_${randomUUID().replaceAll('-', '')}`
      const pool = new Pool({ connectionString: postgres.url })
      const stores = postgresStores({ pool, schema })
      await stores.migrate()
      const hook = await receiver()
      const blobs = join(folder, 'shared-blobs')
      const other = startWorker({ postgres: postgres.url, schema, blobs })
      await other.ready
      const queue = postgresQueue({ pool, schema })
      const { jobs, applications } = stores
      const engine = api({ jobs, applications, blobs: fsBlobs({ directory: blobs }), queue })
      await submit(engine, hook.url, { fail: true })
      await hook.received
      const theirs = await other.end()
      await engine.close()
      await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await pool.end()
      hook.close()

      const all = [...ownSpans(), ...theirs]
      const paths = expected.filter(([name]) => name !== 'publish')
      expect(all.map((span) => pathOf(span, all))).toEqual(expect.arrayContaining(paths))
      expect(all).toHaveLength(paths.length)
      const failed = all.filter((span) => span.status === SpanStatusCode.ERROR)
      expect(new Set(failed.map(({ name }) => name))).toEqual(new Set(['stage write', 'run', `process ${workflow}`]))
      for (const span of failed) expect(span.attributes).toMatchObject({ 'error.type': 'INTERNAL_ERROR' })
    },
  )
})

test('a batch is one trace: its request, all of its jobs, and its webhook', async () => {
  const hook = await receiver()
  const sqlite = join(folder, 'batch.db')
  const stores = sqliteStores({ path: sqlite })
  const blobs = join(folder, 'batch-blobs')
  const { jobs, applications } = stores
  const engine = api({ jobs, applications, blobs: fsBlobs({ directory: blobs }), queue: memoryQueue() })
  await submitBatch(engine, hook.url)
  await engine.close()
  stores.close()

  const other = startWorker({ sqlite, blobs })
  const headers = await hook.received
  const all = [...ownSpans(), ...(await other.end())]
  hook.close()

  const above = ['submit batch', 'POST /batch']
  const job = [
    [`process ${workflow}`],
    ['fetch', `process ${workflow}`],
    ['run', `process ${workflow}`],
    ['stage think', 'run', `process ${workflow}`],
    ['stage write', 'run', `process ${workflow}`],
    ['publish', `process ${workflow}`],
  ].map((path) => [...path, ...above])
  const paths = [['POST /batch'], above, ...job, ...job, ['POST webhook', ...above]]
  const inOrder = (some: string[][]) => some.map((path) => path.join(' < ')).sort()
  expect(inOrder(all.map((span) => pathOf(span, all)))).toEqual(inOrder(paths))
  expect(new Set(all.map((span) => span.trace))).toEqual(new Set([client.trace]))
  const call = all.find(({ name }) => name === 'POST webhook')
  expect(headers).toMatchObject({ traceparent: `00-${client.trace}-${call?.id}-01`, tracestate: 'vendor=1' })
})

test('a request within a span of the host gets no second one, and health checks get none', async () => {
  const engine = api({})
  const handler = createHandler(engine, { anonymous: { id: 'app', name: 'App' } })
  await provider.getTracer('host').startActiveSpan('host', async (span) => {
    await handler(new Request('http://localhost/workflow', { headers: { traceparent } }))
    await engine.submit({ app: 'app', workflow })
    span.end()
  })
  await handler(new Request('http://localhost/healthz'))
  const [submitted, host, ...rest] = ownSpans()
  expect(rest).toEqual([])
  expect(host?.name).toBe('host')
  expect(submitted).toMatchObject({ name: `submit ${workflow}`, parent: host?.id })
  await engine.close()
})

test('a refused request is not an error of the service', async () => {
  const handler = createHandler(api({}))
  await handler(new Request('http://localhost/application', { headers: { authorization: 'wrong' } }))
  expect(ownSpans()).toMatchObject([
    { name: 'GET /application', attributes: { 'http.response.status_code': 401 }, status: SpanStatusCode.UNSET },
  ])
})

test('what was thrown cannot make the end of a span throw, whatever it is', () => {
  const unreadable = Object.defineProperty(new Error('seen'), 'message', {
    get() {
      throw new Error('no message')
    },
  })
  for (const error of [unreadable, Object.create(null), Symbol('thrown'), null])
    openTelemetry({ tracerProvider: provider }).begin({ name: 'work', kind: 'internal' }).end(error)
  expect(ownSpans().map((span) => span.error)).toEqual([
    expect.stringContaining('cannot be read'),
    expect.stringContaining('cannot be read'),
    'Symbol(thrown)',
    'null',
  ])
})

test('without an SDK nothing is recorded, and the context of the request is passed on', async () => {
  trace.disable()
  const settings = { workflows: [twoStages()], logger: silentLogger, webhooks: { secret } }
  const engine = createEngine({ ...settings, tracing: openTelemetry() })
  const plain = createEngine(settings)
  try {
    for (const one of [engine, plain]) {
      const id = await submit(one, 'https://receiver.example.org/')
      const { ids } = await submitBatch(one, 'https://receiver.example.org/')
      for (const each of [id, ...ids])
        expect((await one.get(each))?.trace).toEqual({ traceparent, tracestate: 'vendor=1' })
    }
  } finally {
    await Promise.all([engine.close(), plain.close()])
    provider.register()
  }
})
