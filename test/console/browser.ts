import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'

// The first browser has no window around the page, so a page costs a third of what it costs in the others.
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** An installed Chromium or Chrome; undefined if there is none. */
export const chromiumPath = [process.env.CHROMIUM_PATH ?? '', ...places].find((path) => path !== '' && existsSync(path))

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * For separations in a page, of seconds of audio: only the innermost loops of the networks' runtime are optimized. By
 * default nearly everything is, anew in each page, which takes longer than the separation.
 */
export const optimizingLittle = '--js-flags=--wasm-tiering-budget=150000000'

/** A browser with an empty profile. */
export function openBrowser(...more: readonly string[]): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath, args: [...quiet, ...more] })
}

/** A browser that exposes its player to a desktop, so that media keys and lock screens reach it. */
export function openBrowserOf(desktopBus: string): Promise<Browser> {
  const env = { ...process.env, DBUS_SESSION_BUS_ADDRESS: desktopBus }
  return chromium.launch({ executablePath: chromiumPath, args: quiet, ignoreDefaultArgs: ['--mute-audio'], env })
}

export interface ConsoleService {
  base: string
  key: string
  stop(): Promise<void>
  /** Ends the process as a crash or a lost machine would. */
  kill(): Promise<void>
}

/** `stemwork serve --console` in a separate process, with the real stems workflow. */
export async function startConsole({
  port = 0,
  data,
  models = ['--allowed-models', 'embedded'],
}: { port?: number; data?: string; models?: readonly string[] } = {}): Promise<ConsoleService> {
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  const key = 'a-key-of-the-console-tests'
  const stored = data === undefined ? [] : ['--data', data]
  const options = ['--port', String(port), '--console', ...stored, '--threads', '1', '--api-keys', key, ...models]
  const child = spawn(process.execPath, [main, 'serve', ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  const ended = once(child, 'exit')
  const line = once(createInterface({ input: child.stdout }), 'line').then(([text]) => String(text))
  const base = /on (\S+)$/.exec((await Promise.race([line, ended.then(() => '')])) ?? '')?.[1]
  if (!base) throw new Error(`The service did not start:\n${log.join('\n')}`)
  return {
    base,
    key,
    async stop() {
      child.kill('SIGINT')
      await ended
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
