import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { test, vi } from 'vitest'
import { snippetsOf } from '../examples/snippets.js'
import { packOnce, root } from '../package/tarball.js'

const page = 'docs/platforms.md'

// Time for an install of some hundred packages, the build of an application, and a separation.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const registry = process.env.npm_config_registry ?? 'https://registry.npmjs.org/'
export const registryAnswers = await fetch(registry, { method: 'HEAD', signal: AbortSignal.timeout(20_000) }).then(
  () => true,
  () => false,
)
const obstacle = registryAnswers ? '' : ` (skipped: ${registry} does not answer)`

/** Defines a test that installs packages; it is skipped where no registry answers. */
export function installsFromRegistry(name: string, body: () => Promise<void>): void {
  test.skipIf(obstacle)(`${name}${obstacle}`, body)
}

/** The content of the page under a heading: files, by the name in their first line, and lines of commands. */
export function section(heading: string): { files: Record<string, string>; commands: string[] } {
  const blocks = snippetsOf(page).filter(({ name }) => name.replace(/ \d+$/, '') === `${page}: ${heading}`)
  if (blocks.length === 0) throw new Error(`${page} has no block under "${heading}".`)
  const files = blocks.flatMap(({ language, code }): [string, string][] => {
    const name = /^\/\/ (\S+)\n/.exec(code)?.[1]
    if (language === 'sh') return []
    if (name === undefined) throw new Error(`The block under "${heading}" in ${page} names no file in its first line.`)
    return [[name, code]]
  })
  const commands = blocks.filter(({ language }) => language === 'sh').flatMap(({ code }) => code.trim().split('\n'))
  return { files: Object.fromEntries(files), commands }
}

export const headings = [
  ...new Set(snippetsOf(page).map(({ name }) => name.slice(`${page}: `.length).replace(/ \d+$/, ''))),
]

const folder = mkdtempSync(join(tmpdir(), 'stemwork-platforms-'))
const servers: ChildProcess[] = []
const tools = join(folder, 'tools')

export const tarball = packOnce

export function removeProjects(): void {
  stopServers()
  rmSync(folder, { recursive: true, force: true })
}

export function stopServers(): void {
  for (const server of servers.splice(0)) {
    if (server.pid !== undefined && server.exitCode === null) process.kill(-server.pid, 'SIGKILL')
  }
}

/** Installs package managers that tests need, once, on the `PATH` of all projects. */
export async function installTools(...packages: string[]): Promise<void> {
  mkdirSync(tools, { recursive: true })
  await run(['npm', 'install', '--prefix', tools, ...packages].join(' '), tools)
}

/** Creates a project with `server.mjs`, which separates a song, and the given files. */
export function project(name: string, files: Record<string, string> = {}): string {
  const place = join(folder, name)
  mkdirSync(place)
  copyFileSync(join(root, 'test/package/fixtures/separation.mjs'), join(place, 'server.mjs'))
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name, version: '1.0.0', private: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, path)), { recursive: true })
    writeFileSync(join(place, path), text)
  }
  return place
}

/**
 * Runs a command of the page to its end, with the tarball instead of the registry's package; resolves with its
 * output.
 */
export async function run(command: string, cwd: string, environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const { child, output } = start(command, cwd, environment)
  const status = await new Promise((resolve) => child.once('close', resolve))
  if (status !== 0) throw new Error(`${command} ended with ${String(status)}:\n${output()}`)
  return output()
}

/** Starts a serving command, until `stopServers`; resolves with its output when `url` answers. */
export async function serve(
  command: string,
  cwd: string,
  url: string,
  environment: NodeJS.ProcessEnv,
): Promise<() => string> {
  const { child, output } = start(command, cwd, environment)
  servers.push(child)
  while (child.exitCode === null) {
    if (await fetch(url).catch(() => undefined)) return output
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  throw new Error(`${command} ended with ${child.exitCode}:\n${output()}`)
}

function start(command: string, cwd: string, environment: NodeJS.ProcessEnv) {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_(?!EXTRA_CA_CERTS)|STEMWORK_|PORT$|npm_(?!config_))/.test(name),
  )
  const child = spawn('bash', ['-euo', 'pipefail', '-c', withTarball(command)], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A separate process group, which can be ended as a whole.
    detached: true,
    env: {
      ...Object.fromEntries(own),
      PATH: [join(tools, 'node_modules/.bin'), dirname(process.execPath), process.env.PATH].join(delimiter),
      YARN_GLOBAL_FOLDER: join(folder, 'yarn'),
      // Downloads only from the registry.
      ONNXRUNTIME_NODE_INSTALL: 'skip',
      NEXT_TELEMETRY_DISABLED: '1',
      npm_config_audit: 'false',
      npm_config_fund: 'false',
      ...environment,
    },
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (text += data))
  return { child, output: () => text }
}

function withTarball(command: string): string {
  return command.replace(
    /^((?:npm|pnpm|yarn|bun) (?:install|add)) stemwork\b/,
    (_, install: string) => `${install} stemwork@file:${tarball().path}`,
  )
}
