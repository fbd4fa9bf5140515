import { Socket } from 'node:net'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Pool } from 'pg'
import type { EngineParts } from '../../core/engine/engine.js'
import { hasPackage, invalidOptions, StemworkError } from '../../core/engine/errors.js'
import { memoryQueue } from '../../adapters/queues/memory/memory-queue.js'
import type { Logger } from '../../core/engine/ports/logger.js'
import { within } from '../../core/engine/ports/within.js'
import { exitStatus } from '../command.js'
import { RedisLock } from './redis-lock.js'
import { serverAddress } from '../terminal/server-failure.js'

/** URLs of a command's store, queue and files. */
export interface DeploymentUrls {
  /** Folder that implies `sqlite:<data>/stemwork.db` and `file:<data>/blobs` where those are not given. */
  data?: string
  /** `memory:`, `sqlite:<path>`, `postgres://...[?schema=<name>]`, or `redis://...` (Keyv, one process only). */
  store?: string
  /**
   * `memory:`, `postgres:` (LISTEN and NOTIFY of the store's server; the default of a Postgres store), `postgres://...`
   * (the same over connections of its own), or `redis://...[?prefix=<name>]` (BullMQ).
   */
  queue?: string
  /** `memory:`, `file:<folder>`, or `s3://<bucket>[/prefix][?endpoint=...&region=...&pathStyle=true]`. */
  blobs?: string
}

export interface Deployment {
  parts: Pick<EngineParts, 'jobs' | 'applications' | 'queue' | 'blobs'>
  /** Whether jobs outlive this process. */
  durable: boolean
  lock?: RedisLock
  /** Closes the adapters that were opened here. */
  close(): Promise<void>
}

type Stores = Pick<EngineParts, 'jobs' | 'applications'> & {
  /** Set for a Postgres store. */
  pool?: Pool
  schema?: string
  /** Set for a store that several processes could open, but only one may. */
  lock?: RedisLock
  close(): Promise<void>
}

type OpenQueue = Pick<EngineParts, 'queue'> & { close(): Promise<void> }

/**
 * Opens the adapters that the URLs name. Optional packages are loaded only for the URLs that need them.
 *
 * @throws StemworkError `INVALID_OPTIONS` for a malformed URL or an impossible combination; `MISSING_DEPENDENCY` with
 * the install command for a missing package.
 */
export async function openDeployment(urls: DeploymentUrls, logger: Logger): Promise<Deployment> {
  const storeUrl = urls.store ?? (urls.data === undefined ? 'memory:' : `sqlite:${join(urls.data, 'stemwork.db')}`)
  const blobsUrl = urls.blobs ?? (urls.data === undefined ? 'memory:' : `file:${join(urls.data, 'blobs')}`)
  const queueUrl = urls.queue ?? (isPostgres(storeUrl) ? storesOwn : 'memory:')
  refuseUnknown('--store', storeUrl)
  refuseUnknown('--queue', queueUrl)
  refuseUnknown('--blobs', blobsUrl)
  refuseWrongPairs(storeUrl, queueUrl, blobsUrl)

  const blobs = await openBlobs(blobsUrl)
  const stores = await openStores(storeUrl, logger)
  try {
    const { queue, close } = await openQueue(queueUrl, stores, logger)
    return {
      parts: { jobs: stores.jobs, applications: stores.applications, queue, blobs },
      lock: stores.lock,
      durable: !isMemory(storeUrl),
      close: async () => void (await Promise.all([stores.close(), close()])),
    }
  } catch (error) {
    await stores.close()
    throw error
  }
}

function refuseWrongPairs(store: string, queue: string, blobs: string): void {
  if (!isMemory(store) && isMemory(blobs)) {
    throw invalidOptions(
      `--store ${nameOf(store)} outlives this process and --blobs memory: does not: after a restart, jobs would ` +
        'name results that are gone. Give --blobs file:<folder> or s3://<bucket>.',
    )
  }
  if (!isMemory(queue) && !isPostgres(store)) {
    throw invalidOptions(
      `--queue ${nameOf(queue)} notifies several processes, and --store ${nameOf(store)} is correct only while one ` +
        'process writes it. Give --store postgres://... or leave --queue out.',
    )
  }
}

async function openStores(url: string, logger: Logger): Promise<Stores> {
  if (isMemory(url)) {
    const { memoryApplications, memoryJobs } = await import('../../adapters/memory.js')
    return { jobs: memoryJobs(), applications: memoryApplications(), close: async () => {} }
  }
  if (url.startsWith('sqlite:')) {
    const { sqliteStores } = await import('../../adapters/stores/sqlite/index.js')
    const { jobs, applications, close } = sqliteStores({ path: resolve(url.slice('sqlite:'.length)), logger })
    return { jobs, applications, close: async () => close() }
  }
  if (isPostgres(url)) {
    const { rest, value: schema } = withoutParameter(url, 'schema')
    const { pool, close } = await openPool(rest)
    const { postgresStores } = await import('../../adapters/postgres.js')
    const { jobs, applications, migrate } = postgresStores({ pool, schema })
    await migrate().catch((error: unknown) => {
      throw withAddress(error, url)
    })
    return { jobs, applications, pool, schema, close }
  }
  const [{ Keyv }, { default: KeyvRedis }] = await optional(['keyv', '@keyv/redis'], () =>
    Promise.all([import('keyv'), import('@keyv/redis')]),
  )
  const { keyvStores } = await import('../../adapters/stores/keyv/index.js')
  const store = new KeyvRedis(url)
  const keyv = new Keyv({ store, namespace: 'stemwork' })
  const lost = (owner: string) => {
    logger.error(
      { owner },
      'Another process has taken over the store while this one was suspended or could not reach Redis. This one ' +
        "exits, because two would overwrite each other's jobs. Start it again once the other has stopped.",
    )
    process.exit(exitStatus.failed)
  }
  const lock = new RedisLock(() => store.getClient(), lost)
  const close = async () => {
    await lock.release()
    // By force: commands to a lost server would keep the process alive.
    await store.disconnect(true)
  }
  return { ...keyvStores({ keyv }), lock, close }
}

async function openQueue(url: string, stores: Stores, logger: Logger): Promise<OpenQueue> {
  if (isMemory(url)) return { queue: memoryQueue(), close: async () => {} }
  if (isPostgres(url)) {
    const { postgresQueue } = await import('../../adapters/postgres.js')
    if (stores.pool && isStoresOwn(url))
      return { queue: postgresQueue({ pool: stores.pool, schema: stores.schema, logger }), close: async () => {} }
    const { rest, value: schema = stores.schema } = withoutParameter(url, 'schema')
    const { pool, close } = await openPool(rest)
    return { queue: postgresQueue({ pool, schema, logger }), close }
  }
  const { bullmqQueue } = await optional(['bullmq', 'ioredis'], () => import('../../adapters/queues/bullmq/index.js'))
  const { rest, value: prefix } = withoutParameter(url, 'prefix')
  return { queue: bullmqQueue({ connection: rest, prefix, logger }), close: async () => {} }
}

async function openPool(url: string): Promise<{ pool: Pool; close(): Promise<void> }> {
  const { default: pg } = await optional(['pg'], () => import('pg'))
  // Without a timeout, a server that accepts the connection but never answers would block forever.
  const connectionTimeoutMillis = 10_000
  // Postgres would JIT-compile statements of long lists, which takes longer than running them.
  const noCompiler = { text: 'SET jit = off', query_timeout: connectionTimeoutMillis }
  const sockets = new Set<Socket>()
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis,
    keepAlive: true,
    stream: () => {
      const socket = new Socket()
      sockets.add(socket)
      return socket.once('close', () => sockets.delete(socket))
    },
    // oxlint-disable-next-line typescript/no-misused-promises -- pg waits for it, which its types do not say
    onConnect: (client) => client.query(noCompiler),
  })
  const close = async () => {
    await within(pool.end(), 1_000, () => new Error('late')).catch(() => {})
    // Requests to an unresponsive server would keep the process alive.
    for (const socket of sockets) socket.destroy()
  }
  return { pool, close }
}

async function openBlobs(url: string): Promise<EngineParts['blobs']> {
  if (isMemory(url)) {
    const { memoryBlobs } = await import('../../adapters/memory.js')
    return memoryBlobs()
  }
  if (url.startsWith('file:')) {
    const { fsBlobs } = await import('../../adapters/blobs/fs/index.js')
    return fsBlobs({ directory: folderOf(url) })
  }
  const [{ S3Client }, { s3Blobs }] = await optional(['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner'], () =>
    Promise.all([
      import('@aws-sdk/client-s3'),
      import('../../adapters/blobs/s3/index.js'),
      import('@aws-sdk/s3-request-presigner'),
    ]),
  )
  const { hostname, pathname, searchParams } = new URL(url)
  const endpoint = searchParams.get('endpoint') ?? undefined
  const client = new S3Client({
    region: searchParams.get('region') || process.env.AWS_REGION || 'us-east-1',
    endpoint,
    // Servers other than AWS rarely answer at <bucket>.<host>.
    forcePathStyle: searchParams.has('pathStyle') ? searchParams.get('pathStyle') !== 'false' : endpoint !== undefined,
    // The SDK has no default timeouts. These leave room for a retry within that of a call (`requestTimeoutMs`).
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 15_000, throwOnRequestTimeout: true },
  })
  const prefix = pathname.replace(/^\/+|\/+$/g, '')
  return s3Blobs({ client, bucket: hostname, ...(prefix ? { prefix: `${prefix}/` } : {}) })
}

/** `file:data/blobs` is relative to the working folder, as a path would be; `file:///data/blobs` is a file URL. */
function folderOf(url: string): string {
  return url.startsWith('file://')
    ? new URL(url, pathToFileURL(`${process.cwd()}/`)).pathname
    : resolve(url.slice('file:'.length))
}

/** Removes our own parameter from a URL of another system. Not with `URL`, which rejects socket addresses. */
function withoutParameter(url: string, name: string): { rest: string; value: string | undefined } {
  const [address = '', query = ''] = url.split('?')
  const parameters = new URLSearchParams(query)
  const value = parameters.get(name) ?? undefined
  if (value === undefined) return { rest: url, value }
  parameters.delete(name)
  return { rest: parameters.size > 0 ? `${address}?${parameters.toString()}` : address, value }
}

function isMemory(url: string): boolean {
  return url === 'memory:'
}

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url)
}

/** URL of a queue that uses the pool of the store. */
const storesOwn = 'postgres:'

function isStoresOwn(url: string): boolean {
  return url === storesOwn || url === 'postgresql:'
}

/** The URL without possible secrets. */
function nameOf(url: string): string {
  if (!url.includes(':')) return `"${url}"`
  const scheme = url.slice(0, url.indexOf(':') + 1)
  return url === scheme ? url : `${scheme}...`
}

const forms = {
  '--store': [/^(memory:$|sqlite:|postgres(ql)?:|rediss?:)/, 'memory:, sqlite:<path>, postgres://..., redis://...'],
  '--queue': [/^(memory:$|postgres(ql)?:|rediss?:)/, 'memory:, postgres:, postgres://..., redis://...'],
  '--blobs': [/^(memory:$|file:|s3:)/, 'memory:, file:<folder>, s3://<bucket>'],
} as const

/** Refuses unknown URLs, before combinations are checked, so that the message names the actual mistake. */
export function refuseUnknown(option: keyof typeof forms, url: string | undefined): void {
  const [form, known] = forms[option]
  if (url === undefined || form.test(url)) return
  throw invalidOptions(`${option} ${nameOf(url)} is not understood. Expected one of: ${known}.`)
}

function withAddress(error: unknown, url: string): unknown {
  const address = serverAddress(url)
  if (!StemworkError.is(error) || address === undefined) return error
  return new StemworkError(error.code, `${address}: ${error.message}`, { cause: error.cause })
}

/** Loads a module that needs these packages. @throws StemworkError `MISSING_DEPENDENCY`. */
export async function optional<Module>(packages: readonly string[], load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    const missing = packages.filter((name) => !hasPackage(name))
    if (missing.length === 0) throw cause
    const [what, are] = missing.length === 1 ? ['the package', 'is'] : ['the packages', 'are']
    throw new StemworkError(
      'MISSING_DEPENDENCY',
      `This needs ${what} ${missing.join(', ')}, which ${are} not installed. Run: npm install ${missing.join(' ')}`,
      { cause },
    )
  }
}
