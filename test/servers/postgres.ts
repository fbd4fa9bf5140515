import { spawnSync } from 'node:child_process'
import { chownSync } from 'node:fs'
import { chown, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { madeOnce } from '../made-once.js'
import { type FoundServer, freePort, hasProgram, type NoServer, type PrivateServer } from './found-server.js'
import { startServer } from './server-process.js'

/** A TCP address, not a socket: tests put proxies before the server, and change parts of its address. */
const standardAddress = 'postgres://root@127.0.0.1:5432/test'

/**
 * The server of `DATABASE_URL`, else that at the standard address, else one started for the caller. Shared: use a
 * separate schema.
 */
export async function findPostgres(): Promise<FoundServer | NoServer> {
  const given = process.env.DATABASE_URL
  if (given) {
    await ping(given)
    return { url: given, async release() {} }
  }
  const answers = await ping(standardAddress).then(
    () => true,
    () => false,
  )
  return answers ? { url: standardAddress, async release() {} } : await startPostgres()
}

/**
 * A private server. It never flushes to disk: confirmed writes survive the end of its processes, but nothing else.
 *
 * @param password of its user `test`. Default: no password is needed.
 */
export async function startPostgres(password?: string): Promise<PrivateServer | NoServer> {
  if (!hasProgram('initdb') || !hasProgram('postgres'))
    return { missing: 'no Postgres: set DATABASE_URL, or put initdb and postgres on the PATH' }
  const owner = databaseOwner()
  if (owner === undefined)
    return { missing: 'Postgres does not run as root, and there is no user "postgres" or "nobody" to start it as' }
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-postgres-'))
  if (owner.uid !== undefined) await chown(directory, owner.uid, owner.gid ?? owner.uid)
  const data = join(directory, 'data')
  const initialize = (folder: string, access: readonly string[]) =>
    runAs(owner, folder, 'initdb', ['-D', join(folder, 'data'), '-U', 'test', ...access, '-E', 'UTF8', '--no-sync'])
  if (password === undefined) {
    // A copy takes a fifth of the CPU time of a new cluster.
    const made = madeOnce('postgres', (folder) => {
      if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid ?? owner.uid)
      initialize(folder, ['-A', 'trust'])
    })
    runAs(owner, directory, 'cp', ['-pR', join(made, 'data'), data])
  } else {
    const passwordFile = join(directory, 'password')
    await writeFile(passwordFile, password)
    initialize(directory, ['-A', 'scram-sha-256', '--pwfile', passwordFile])
  }
  const user = password === undefined ? 'test' : `test:${password}`
  const url = `postgres://${user}@127.0.0.1:${port}/postgres`
  const args = [
    '-D',
    data,
    '-p',
    String(port),
    '-k',
    directory,
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    'fsync=off',
    '-c',
    'max_connections=60',
    '-c',
    'shared_buffers=16MB',
  ]
  // "Immediate shutdown": every connection is cut, and the next start recovers from the log, as after a crash.
  return await startServer(url, { command: 'postgres', args, directory, signal: 'QUIT', owner }, ping)
}

function runAs(owner: object, cwd: string, program: string, words: string[]): void {
  const { status, stderr } = spawnSync(program, words, { ...owner, cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} failed: ${stderr}`)
}

interface Owner {
  uid?: number
  gid?: number
}

/** Cached, as in `hasProgram`. */
let found: { owner: Owner | undefined } | undefined

/** The user to run as: Postgres and its poolers refuse to be root. */
export function databaseOwner(): Owner | undefined {
  if (process.getuid?.() !== 0) return {}
  found ??= { owner: ['postgres', 'nobody'].map(idsOf).find((ids) => ids !== undefined) }
  return found.owner
}

function idsOf(name: string): Owner | undefined {
  const [uid, gid] = ['-u', '-g'].map((option) => spawnSync('id', [option, name], { encoding: 'utf8' }))
  return uid?.status === 0 && gid?.status === 0 ? { uid: Number(uid.stdout), gid: Number(gid.stdout) } : undefined
}

export async function ping(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('SELECT 1')
  } finally {
    await client.end().catch(() => {})
  }
}
