import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { postgresStores, type PostgresStores } from '../../src/adapters/postgres.js'
import { createApplication, issueKey } from '../../src/http/auth/applications.js'
import { freePort, type NoServer, type PrivateServer } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { startS3Server } from '../servers/s3-server.js'
import { type SilentProxy, startSilentProxy } from '../servers/silent-proxy.js'
import { keepLedger } from './ledger.js'
import { NodeProcess } from './node-process.js'

export type ServerName = 'postgres' | 'redis' | 's3'

/** A process of the deployment, with its own proxy to each server. */
export interface Node {
  name: string
  kind: 'api' | 'worker'
  isOtherBuild: boolean
  /** Origin of an API node. */
  origin: string
  process: NodeProcess
  proxies: Partial<Record<ServerName, SilentProxy>>
}

export interface DeploymentOptions {
  /** Root folder of this repository. */
  root: string
  queue: 'bullmq' | 'postgres'
  workers: number
  apiNodes: number
  /** Folder of the other build, which every second node runs. */
  otherBuild?: string
  leaseSeconds: number
}

export type CrashDeployment = Awaited<ReturnType<typeof startDeployment>>

/** The origin of links; clients of the run replace it with that of a node. */
export const publicOrigin = 'http://crash.test'

/** Servers, and the nodes of a service as processes, none of them shared with anything else. */
export async function startDeployment(options: DeploymentOptions) {
  const { root, queue, leaseSeconds } = options
  const postgres = present(await startPostgres())
  const redis = queue === 'bullmq' ? present(await startRedis()) : undefined
  const s3 = await startS3Server(['media'])
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-crash-'))
  const pool = new pg.Pool({ connectionString: postgres.url })
  pool.on('error', () => {})
  const stores = postgresStores({ pool })
  await stores.migrate()
  await keepLedger(pool)
  const keys = await makeKeys(stores)

  const environment = {
    AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
    STEMWORK_LINK_SECRET: 'a-secret-of-the-crash-run-for-its-links',
    TMPDIR: folder,
  }
  const nodes: Node[] = []
  // Before free ports for the nodes are chosen: otherwise a proxy might get such a port.
  const proxiesOfNodes = await Promise.all(
    Array.from({ length: options.apiNodes + options.workers }, async () => ({
      postgres: await startSilentProxy(postgres.url),
      redis: redis && (await startSilentProxy(redis.url)),
      s3: await startSilentProxy(s3.url),
    })),
  )
  for (const [index, proxies] of proxiesOfNodes.entries()) {
    const kind = index < options.apiNodes ? 'api' : 'worker'
    const isOtherBuild = options.otherBuild !== undefined && index % 2 === 1
    const build = isOtherBuild && options.otherBuild !== undefined ? options.otherBuild : root
    const port = await freePort()
    const command = [
      join(build, 'dist/cli/main.js'),
      ...(kind === 'api'
        ? ['serve', '--api-only', '--port', String(port), '--public-url', publicOrigin]
        : ['worker', '--lease', String(leaseSeconds), '--concurrency', '4']),
      '--store',
      proxies.postgres.url,
      '--queue',
      proxies.redis?.url ?? 'postgres:',
      '--blobs',
      `s3://media?endpoint=${encodeURIComponent(proxies.s3.url)}`,
      '--workflows',
      join(root, 'test/crash/fixtures/crash-workflow.mjs'),
      '--allow-private-inputs',
    ]
    nodes.push({
      name: `${kind} ${index}${isOtherBuild ? ' (other build)' : ''}`,
      kind,
      isOtherBuild,
      origin: `http://127.0.0.1:${port}`,
      process: new NodeProcess(command, environment),
      proxies,
    })
  }
  await Promise.all(nodes.map((node) => node.process.start()))

  return {
    postgres,
    redis,
    s3,
    pool,
    stores,
    keys,
    nodes,
    proxiesOf: (server: ServerName) => nodes.flatMap((node) => node.proxies[server] ?? []),
    async close() {
      await Promise.all(nodes.map((node) => node.process.stop(0)))
      await Promise.all(nodes.flatMap((node) => Object.values(node.proxies).map((proxy) => proxy?.close())))
      await pool.end()
      await Promise.all([postgres.release(), redis?.release(), s3.close()])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** API keys of three applications. */
async function makeKeys({ applications }: PostgresStores): Promise<string[]> {
  const keys: string[] = []
  for (const name of ['first', 'second', 'third']) {
    const { id } = await createApplication(applications, { name })
    keys.push((await issueKey(applications, id, { label: 'crash run' })).key)
  }
  return keys
}

function present(server: PrivateServer | NoServer): PrivateServer {
  if ('missing' in server) throw new Error(`The crash run needs servers of its own: ${server.missing}.`)
  return server
}
