import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { type FoundServer, freePort, hasProgram, type NoServer, type PrivateServer } from './found-server.js'
import { startServer } from './server-process.js'

const program = ['redis-server', 'valkey-server'].find(hasProgram)

/**
 * The server of `REDIS_URL`, else that at the standard address, else one started for the caller. Shared: use own keys.
 */
export async function findRedis(): Promise<FoundServer | NoServer> {
  const given = process.env.REDIS_URL
  if (given) {
    await ping(given)
    return { url: given, async release() {} }
  }
  const standard = 'redis://127.0.0.1:6379'
  const answers = await ping(standard).then(
    () => true,
    () => false,
  )
  if (answers) return { url: standard, async release() {} }
  return await startRedis()
}

/** A private server without persistence: its data is lost when it stops. */
export async function startRedis(): Promise<PrivateServer | NoServer> {
  if (program === undefined) return { missing: 'no Redis: set REDIS_URL, or install redis-server' }
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-redis-'))
  const url = `redis://127.0.0.1:${port}`
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', directory]
  return await startServer(url, { command: program, args, directory, signal: 'KILL' }, ping)
}

async function ping(url: string): Promise<void> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: 2000,
    maxRetriesPerRequest: 0,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.ping()
  } finally {
    client.disconnect()
  }
}
