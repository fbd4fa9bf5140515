import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const keptLogLines = 20

/** Starts `stemwork serve` on a free port with its own data folder; `stop()` removes both. */
export async function startService() {
  const data = await mkdtemp(join(tmpdir(), 'stemwork-data-'))
  // Hexadecimal: a key that begins with a hyphen would be read as an option.
  const key = randomBytes(24).toString('hex')
  const child = spawn(process.execPath, [main, 'serve', '--port', '0', '--data', data, '--api-keys', key], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit')
  process.once('exit', () => child.kill())
  const log = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    log.push(line)
    if (log.length > keptLogLines) log.shift()
  })
  const stop = async () => {
    child.kill('SIGINT')
    await ended
    await rm(data, { recursive: true, force: true })
  }
  const baseUrl = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(
      ([line]) => /^stemwork listening on (\S+)$/.exec(line)?.[1],
    ),
    ended.then(() => undefined),
  ])
  if (baseUrl) return { baseUrl, key, log, stop }
  await stop()
  throw new Error(`The service did not start. Its last words:\n${log.join('\n')}`)
}
