import { chown, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answering, type FoundServer, freePort, hasProgram, type NoServer } from './found-server.js'
import { databaseOwner, ping } from './postgres.js'
import { ServerProcess } from './server-process.js'

/** PgBouncer in front of the given server, which gives each transaction any free one of its few connections. */
export async function startPgBouncer(databaseUrl: string): Promise<FoundServer | NoServer> {
  const owner = databaseOwner()
  if (!hasProgram('pgbouncer') || owner === undefined) return { missing: 'no PgBouncer: put pgbouncer on the PATH' }
  const { hostname, port: databasePort, username, pathname } = new URL(databaseUrl)
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-pgbouncer-'))
  const config = join(directory, 'pgbouncer.ini')
  const settings = [
    '[databases]',
    `test = host=${hostname} port=${databasePort} user=${username} dbname=${pathname.slice(1)}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    'default_pool_size = 3',
  ]
  await writeFile(config, settings.join('\n'))
  if (owner.uid !== undefined)
    await Promise.all([directory, config].map((path) => chown(path, owner.uid as number, owner.gid ?? 0)))
  const own = new ServerProcess({ command: 'pgbouncer', args: ['-q', config], directory, signal: 'KILL', owner })
  own.start()
  const url = `postgres://test@127.0.0.1:${port}/test`
  await answering(() => ping(url))
  return { url, release: () => own.release() }
}
