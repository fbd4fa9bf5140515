import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** The members used of the package `ws`, which has no types. */
interface Socket extends NodeJS.EventEmitter {
  send(message: string): void
}
const library = 'ws'
const { WebSocket } = (await import(library)) as { WebSocket: new (address: string) => Socket }

const places = ['/usr/bin/firefox-esr', '/usr/bin/firefox', '/Applications/Firefox.app/Contents/MacOS/firefox']

/** An installed Firefox; undefined if there is none. */
export const firefoxPath = [process.env.FIREFOX_PATH ?? '', ...places].find((path) => path !== '' && existsSync(path))

export interface Firefox {
  /** Opens the address, and returns once it is loaded. */
  goto(url: string): Promise<void>
  /** Chooses a file in the only file input of the page. */
  choose(file: string): Promise<void>
  /** The value of an expression of JSON values, or of a promise of one. */
  evaluate<Value>(expression: string): Promise<Value>
  close(): Promise<void>
}

/** Starts a Firefox with an empty profile and one page, driven by WebDriver BiDi. */
export async function openFirefox(preferences: Record<string, boolean | number> = {}): Promise<Firefox> {
  const profile = await mkdtemp(join(tmpdir(), 'firefox-'))
  const lines = Object.entries({ 'app.update.enabled': false, ...preferences })
  await writeFile(join(profile, 'user.js'), lines.map(([name, value]) => `user_pref("${name}", ${value});\n`).join(''))
  const options = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0']
  const child = spawn(firefoxPath ?? '', options, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const log = createInterface({ input: child.stderr })
  const address = await new Promise<string>((resolve, reject) => {
    log.on('line', (line) => {
      const [, found] = /BiDi listening on (\S+)/.exec(line) ?? []
      if (found) resolve(found)
    })
    ended.then(() => reject(new Error('Firefox ended before it could be driven.')), reject)
  })
  const send = await connect(`${address}/session`)
  await send('session.new', { capabilities: {} })
  const { contexts } = await send<{ contexts: { context: string }[] }>('browsingContext.getTree', {})
  const context = contexts[0]!.context

  async function evaluated<Value>(expression: string): Promise<Value> {
    const target = { context }
    const answer = await send<Evaluated<Value>>('script.evaluate', { expression, target, awaitPromise: true })
    if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text)
    return answer.result
  }
  return {
    goto: (url) => send('browsingContext.navigate', { context, url, wait: 'complete' }),
    async choose(file) {
      const { sharedId } = await evaluated<{ sharedId: string }>("document.querySelector('input[type=file]')")
      await send('input.setFiles', { context, element: { sharedId }, files: [file] })
    },
    async evaluate<Value>(expression: string) {
      const { value } = await evaluated<{ value: string }>(`(async () => JSON.stringify(await (${expression})))()`)
      return JSON.parse(value) as Value
    },
    async close() {
      child.kill()
      await ended
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

type Evaluated<Result> = { type: 'success'; result: Result } | { type: 'exception'; exceptionDetails: { text: string } }

interface Answer {
  id: number
  result?: unknown
  error?: string
  message?: string
}

type Send = <Result = void>(method: string, params: object) => Promise<Result>

async function connect(address: string): Promise<Send> {
  const socket = new WebSocket(address)
  await once(socket, 'open')
  const waiting = new Map<number, { resolve(result: never): void; reject(error: Error): void }>()
  socket.on('message', (data: Buffer) => {
    const { id, result, error, message } = JSON.parse(String(data)) as Answer
    if (error) waiting.get(id)?.reject(new Error(`${error}: ${message}`))
    else waiting.get(id)?.resolve(result as never)
    waiting.delete(id)
  })
  let last = 0
  return (method, params) =>
    new Promise<never>((resolve, reject) => {
      waiting.set(++last, { resolve, reject })
      socket.send(JSON.stringify({ id: last, method, params }))
    })
}
