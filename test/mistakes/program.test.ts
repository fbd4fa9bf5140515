import { once } from 'node:events'
import { createServer } from 'node:http'
import { inspect } from 'node:util'
import { Keyv } from 'keyv'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { s3Blobs } from '../../src/adapters/blobs/s3/index.js'
import { postgresQueue, postgresStores } from '../../src/adapters/postgres.js'
import { bullmqQueue } from '../../src/adapters/queues/bullmq/index.js'
import { memoryJobs } from '../../src/adapters/stores/memory/memory-jobs.js'
import { keyvStores } from '../../src/adapters/stores/keyv/index.js'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { createClient } from '../../src/client/client.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { composeWorkflow, createEngine, type JobEngine, localFile } from '../../src/index.js'
import { createApplication, createHandler, issueKey } from '../../src/http/index.js'
import { resolveModel } from '../../src/models.js'
import { expressMount } from '../../src/http/mounts/express.js'
import { expectToTeach, type Mistake } from './table.js'

/** Mistakes in JavaScript programs, which no compiler finds. */
interface ProgramMistake extends Mistake {
  make(): unknown
}

const workflow = 'service/stems-vocals-accompaniment'
const wrong = (value: unknown) => value as never
const definition = { id: 'service/mine', name: 'Mine', description: '', outputs: () => ({}) }
const stages = [{ name: 'work', run: async () => {} }]
let engine: JobEngine
beforeAll(() => void (engine = createEngine() as unknown as JobEngine))
afterAll(() => engine.close())

const mistakes: ProgramMistake[] = [
  {
    what: 'an option misspelt',
    make: () => createEngine(wrong({ dispach: {} })),
    says: [/dispach: is not known: the nearest name is dispatch/],
  },
  {
    what: 'a part misspelt',
    make: () => createEngine(wrong({ workflow: [] })),
    says: [/workflow: is not known: the nearest name is workflows/],
  },
  {
    what: 'all that sqliteStores() returns, instead of its jobs and applications',
    make: () => createEngine(wrong({ close: async () => {} })),
    says: [/close: is not known: expected only workflows, jobs, applications, /],
  },
  {
    what: 'a nested option misspelt',
    make: () => createEngine(wrong({ dispatch: { concurency: 2 } })),
    says: [/dispatch\.concurency: is not known: the nearest name is concurrency/],
  },
  {
    what: 'a time with a unit',
    make: () => createEngine(wrong({ dispatch: { leaseMs: '30s' } })),
    says: [/dispatch\.leaseMs: must be a number, not "30s"/],
  },
  {
    what: 'no job at a time',
    make: () => createEngine({ dispatch: { concurrency: 0 } }),
    says: [/engine options\. dispatch\.concurrency: must be more than 0/],
  },
  {
    what: 'an option of the child misspelt',
    make: () => createEngine(wrong({ child: { idle: 5 } })),
    says: [/engine options\. child\.idle: is not known: the nearest name is idleMs/],
  },
  {
    what: 'no workflow',
    make: () => createEngine({ workflows: wrong([{}]) }),
    says: [/workflows must be .*defineWorkflow/],
  },
  { what: 'a handler without an engine', make: () => createHandler(wrong(undefined)), says: [/takes an engine/] },
  {
    what: 'an option of the handler misspelt',
    make: () => createHandler(engine, wrong({ basepath: '/v1' })),
    says: [/basepath: is not known: the nearest name is basePath/],
  },
  ...['v1', '/v1/'].map((basePath) => ({
    what: `a path such as ${basePath}`,
    make: () => createHandler(engine, { basePath }),
    says: [/basePath: must be empty or like "\/v1", without a slash at the end/],
  })),
  {
    what: 'an origin with a slash at its end, which no browser sends',
    make: () => createHandler(engine, { cors: { origins: ['https://app.example.org/'] } }),
    says: [/cors\.origins\.0: must be like https:\/\/app\.example\.org, without a path/],
  },
  {
    what: 'an address without https',
    make: () => createHandler(engine, { publicUrl: 'example.org' }),
    says: [/publicUrl: must be a complete URL.*not "example\.org"/],
  },
  {
    what: 'an engine mounted instead of a handler',
    make: () => expressMount(wrong(engine)),
    says: [/needs the handler that createHandler/],
  },
  { what: 'no app', make: () => engine.submit(wrong({ workflow, params: {} })), says: [/app: is missing/] },
  {
    what: 'null instead of options',
    make: () => createEngine(wrong(null)),
    says: [/createEngine takes an object with options, or nothing, not null/],
  },
  {
    what: 'a list of workflows instead of options',
    make: () => createEngine(wrong([])),
    says: [/createEngine takes an object with options, or nothing, not a list/],
  },
  {
    what: 'a path instead of a URL',
    make: () => engine.submit({ app: 'me', workflow, params: { inputUrl: 'song.mp3' } }),
    says: [/params\.inputUrl: .*http:\/\/.*not "song\.mp3"/],
  },
  {
    what: 'a missing file',
    make: () => engine.submit({ app: 'me', workflow, inputs: { inputUrl: localFile('sogn.mp3') } }),
    says: [/local file sogn\.mp3 cannot be read \(ENOENT\)\. Check its path/],
  },
  {
    what: 'an input of another name',
    make: () => engine.submit({ app: 'me', workflow, inputs: wrong({ song: localFile('package.json') }) }),
    says: [/inputs\.song: is not an input of .*it has inputUrl/],
  },
  {
    what: 'a folder under another name',
    make: () => fsBlobs(wrong({ folder: 'x' })),
    says: [/\{ directory: .*called with \{ folder \}/],
  },
  {
    what: 'a database without a path',
    make: () => sqliteStores(wrong({ file: 'x' })),
    says: [/\{ path: .*called with \{ file \}/],
  },
  {
    what: 'an address instead of a pool',
    make: () => postgresStores(wrong({ url: 'x' })),
    says: [/\{ pool \}\) needs a Pool.*\{ url \}/],
  },
  {
    what: 'a workflow id with a space',
    make: () => defineWorkflow({ ...definition, id: 'my workflow', params: z.object({}), stages }),
    says: [/"my workflow": id: must be path-like, for example/],
  },
  {
    what: 'an output whose file name has a space',
    make: () => {
      const outputs = { report: { fileName: 'my report.txt', contentType: 'text/plain' } }
      return defineWorkflow({ ...definition, outputs, params: z.object({}), stages })
    },
    says: [/service\/mine: output "report" with file name "my report\.txt" is not allowed; use letters/],
  },
  {
    what: 'a list of outputs that is null',
    make: () => defineWorkflow({ ...definition, outputs: wrong(null), params: z.object({}), stages }),
    says: [/outputs: must be an object of outputs by their names/],
  },
  {
    what: 'an output that is null',
    make: () => defineWorkflow({ ...definition, outputs: wrong({ report: null }), params: z.object({}), stages }),
    says: [/outputs: must be an object of outputs by their names/],
  },
  {
    what: 'a model that is a number',
    make: () => resolveModel(wrong(2)),
    says: [/A model is chosen by a text: its name, or the path/],
  },
  {
    what: 'an interval with a unit',
    make: () => postgresQueue({ pool: wrong({ query() {} }), checkIntervalMs: wrong('1m') }),
    says: [/postgresQueue: checkIntervalMs must be a number of milliseconds from 1 to 2147483647, not 1m/],
  },
  {
    what: 'params that are not a schema',
    make: () => defineWorkflow({ ...definition, params: wrong({ song: 'string' }), stages }),
    says: [/params: must be a schema of zod 4/],
  },
  {
    what: 'an application without a name',
    make: () => createApplication(engine.applications, wrong({})),
    says: [/a name/],
  },
  {
    what: 'a key for an unknown application',
    make: () => issueKey(engine.applications, 'me'),
    says: [/no application "me"\. Create it/],
  },
  {
    what: 'a client without http',
    make: () => createClient({ baseUrl: 'localhost:8080', apiKey: 'x' }),
    says: [/baseUrl.*such as https:.*not "localhost:8080"/],
  },
  {
    what: 'a service that is down',
    async make() {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as { port: number }
      server.close()
      const client = createClient({ baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: 'x', retries: 0 })
      return client.workflows()
    },
    says: [/at http:\/\/127\.0\.0\.1:\d+\/v1 did not answer \(connect ECONNREFUSED.*Check the address/],
  },
]

/** Functions called without their argument: the message names it. */
const bare: [call: string, make: (nothing: never) => unknown, says: RegExp][] = [
  ['fsBlobs', fsBlobs, /fsBlobs\(\{ directory: 'data\/blobs' \}\) needs the path of a folder/],
  ['s3Blobs', s3Blobs, /s3Blobs\(\{ client, bucket: 'media' \}\) needs an S3Client and the name of a bucket/],
  ['sqliteStores', sqliteStores, /sqliteStores\(\{ path: 'data\/stemwork\.db' \}\) needs the path of a file/],
  ['postgresStores', postgresStores, /postgresStores\(\{ pool \}\) needs a Pool/],
  ['postgresQueue', postgresQueue, /postgresQueue\(\{ pool \}\) needs a Pool/],
  ['bullmqQueue', bullmqQueue, /bullmqQueue\(\{ connection: 'redis:.*needs the address of a Redis/],
  ['keyvStores', keyvStores, /keyvStores\(\{ keyv \}\) needs a Keyv/],
  ['localFile', localFile, /localFile\('song\.mp3'\) needs the path of a file/],
  ['defineWorkflow', defineWorkflow, /definition: is missing: expected an object/],
  ['composeWorkflow', composeWorkflow, /composition: is missing: expected an object/],
  ['createClient', createClient, /createClient needs baseUrl/],
]
for (const [call, make, says] of bare)
  mistakes.push({ what: `${call} without an argument`, make: () => make(wrong(undefined)), says: [says] })

/** Stores whose idempotency keys would be forgotten at once, so that a repeated request makes a second job. */
const forgetful: [call: string, make: (options: { idempotencyMs: number }) => unknown][] = [
  ['memoryJobs', memoryJobs],
  ['sqliteStores', (options) => sqliteStores({ path: 'jobs.db', ...options })],
  ['keyvStores', (options) => keyvStores({ keyv: new Keyv(), ...options })],
  ['postgresStores', (options) => postgresStores({ pool: wrong({ query() {} }), ...options })],
]
for (const [call, make] of forgetful)
  mistakes.push({
    what: `${call} with a time that has a unit`,
    make: () => make({ idempotencyMs: wrong('1d') }),
    says: [new RegExp(`${call}: idempotencyMs must be a number of milliseconds, not 1d`)],
  })

test.each(mistakes)('$what', async ({ make, ...mistake }) => {
  const message = await Promise.resolve()
    .then(make)
    .then(
      (made) => `No mistake: ${String(made)}`,
      (error: Error) => error.message,
    )
  expectToTeach(mistake, message)
})

/** Faulty workflows of newcomers, with the messages for clients and in the log. */
const faults: [what: string, run: (signal: AbortSignal) => Promise<void>, says: RegExp, inLog: RegExp][] = [
  ['throws', () => Promise.reject(new Error('The tape is torn.')), /failed/i, /The tape is torn\./],
  [
    'never ends',
    (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    /longer than|time/i,
    /timeoutMs|longer than|time/i,
  ],
]

test.each(faults)('a workflow that %s fails its job with a message, and the log has the cause', async (...fault) => {
  const [what, run, says, inLog] = fault
  const log: string[] = []
  const write = (fields: unknown, text?: string) => void log.push(`${text} ${inspect(fields)}`)
  const logger = { debug: write, info: write, warn: write, error: write }
  const id = 'service/faulty'
  const faulty = defineWorkflow({
    ...definition,
    id,
    inputs: [],
    params: z.object({}),
    policy: { timeoutMs: 200, maxAttempts: 1 },
    stages: [{ name: 'work', run: ({ signal }) => run(signal) }],
  })
  const host = createEngine({ workflows: [faulty], logger })
  const { job } = await host.submit({ app: 'me', workflow: id, params: {} })
  const done = await host.run(job.id)
  await host.close()
  expect(done?.status).toBe('FAILED')
  expectToTeach({ what, says: [says] }, done?.error?.message ?? '')
  expect(log.join('\n')).toMatch(inLog)
})
