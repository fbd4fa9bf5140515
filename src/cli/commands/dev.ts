import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type FSWatcher, watch } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { invalidOptions } from '../../core/engine/errors.js'
import { installedScript } from '../../core/engine/package-files.js'
import { type Command, type CommandInput, exitStatus, flag, type Terminal, valued } from '../command.js'
import { type Interruption, onInterruption } from '../terminal/interruption.js'
import { systemErrorText } from '../terminal/system-error.js'

const defaultFolder = 'workflows'
/** Keeps the service from outliving this process, however this process ends. */
const endsWithParent = 'process.on("disconnect",()=>process.kill(process.pid,"SIGTERM"));process.channel.unref()'
/** Editors save a file in several steps. */
const settleMs = 100

export const command: Command = {
  usage: 'dev [folder] [options]',
  description:
    'Runs a service with the workflows of a folder while you write them: it reloads them on each change, prints ' +
    'each step with its time, and opens the console. Jobs that are running during a change continue with the new ' +
    'code; their finished steps are not run again.',
  positionals: { min: 0, max: 1 },
  options: {
    port: valued('n', 'Port to listen on, 0 for a free one. Default: 8080.'),
    data: valued('dir', 'Folder in which jobs, files and keys survive. Default: a temporary one.'),
    'no-open': flag('Do not open the console in a browser.'),
  },
  notes:
    `Folder: ./${defaultFolder}, whose files (.mjs, .js, .json; .ts where Node runs it) each export a workflow. What ` +
    'they import may be in folders below; tests (.test.mjs) are left out.',
  async run(input, terminal) {
    const interruption = onInterruption((status) => process.exit(status))
    const folder = input.positionals[0] ?? defaultFolder
    const given = input.text('data')
    const data = given ?? (await mkdtemp(join(tmpdir(), 'stemwork-dev-')))
    try {
      await requireFolder(folder)
      await develop(folder, data, input, interruption, terminal)
      return exitStatus.done
    } finally {
      interruption.release()
      if (given === undefined) await rm(data, { recursive: true, force: true, maxRetries: 3 })
    }
  },
}

async function requireFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch((error) => error as NodeJS.ErrnoException)
  if (!(found instanceof Error) && found.isDirectory()) return
  const why = found instanceof Error ? systemErrorText(found) : 'it is a file.'
  throw invalidOptions(
    `The folder ${folder} cannot be used: ${why} Create it and put a file with a workflow in it; \`npm create ` +
      'stemwork -- --template workflow` makes a project that has one.',
  )
}

/** Restarts the service after each change, until interrupted. A module cannot be loaded twice in the same process. */
async function develop(
  folder: string,
  data: string,
  input: CommandInput,
  { signal }: Interruption,
  { stderr, stdout }: Terminal,
): Promise<void> {
  let port = input.number('port', { min: 0, max: 65_535 }) ?? 8080
  const key = randomBytes(24).toString('base64url')
  let mayOpen = !input.isOn('no-open') && process.stdout.isTTY
  while (!signal.aborted) {
    const change = nextChange(folder, signal)
    const service = startService([folder, '--data', data, '--port', String(port)], key)
    service.stdout?.once('data', (line: Buffer) => {
      const address = /http\S+/.exec(String(line))?.[0] ?? ''
      port = Number(new URL(address).port)
      stdout.write(`Ready at ${address} with the API key ${key}; waiting for changes in ${folder}.\n`)
      if (mayOpen) openInBrowser(`${address}/console`)
      mayOpen = false
    })
    const gone = once(service, 'exit')
    // A service that could not start has printed the reason; the next change may fix it.
    await change
    service.kill('SIGTERM')
    await gone
    if (!signal.aborted) stderr.write('A file changed; restarting.\n')
  }
}

function startService(args: readonly string[], key: string): ChildProcess {
  const main = installedScript('cli/main.js')
  const service = [main, 'serve', '--console', '--grace', '0', '--workflows', ...args]
  return spawn(process.execPath, ['--import', `data:text/javascript,${endsWithParent}`, ...service], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { ...process.env, STEMWORK_API_KEYS: key },
    // Ctrl-C is meant for this process, which stops the service.
    detached: process.platform !== 'win32',
  })
}

/** Resolves once something in the folder has changed and changes have stopped, or when the signal fires. */
async function nextChange(folder: string, signal: AbortSignal): Promise<void> {
  let watcher: FSWatcher | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      watcher = watch(folder, { recursive: true }, () => resolve())
      watcher.on('error', reject)
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  } finally {
    watcher?.close()
  }
  await delay(settleMs, undefined, { signal }).catch(() => {})
}

function openInBrowser(url: string): void {
  const [program, ...args] = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] }[process.platform as string] ?? [
    'xdg-open',
  ]
  if (program)
    spawn(program, [...args, url], { stdio: 'ignore', detached: true })
      .on('error', () => {})
      .unref()
}
