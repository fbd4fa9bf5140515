import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const smallWorkflow = fileURLToPath(new URL('./fixtures/small-workflow.mjs', import.meta.url))

/** A `stemwork worker` that may be killed and is started again by its owner. */
export class WorkerProcess {
  readonly #options: string[]
  readonly #environment: NodeJS.ProcessEnv
  #child: ChildProcess | undefined
  #starting: Promise<void> | undefined
  #stopped = false
  #log = ''

  constructor(
    urls: { store: string; queue?: string; blobs: string },
    environment: NodeJS.ProcessEnv,
    workflow = smallWorkflow,
  ) {
    this.#options = [
      'worker',
      '--store',
      urls.store,
      ...(urls.queue === undefined ? [] : ['--queue', urls.queue]),
      '--blobs',
      urls.blobs,
      '--workflows',
      workflow,
      '--lease',
      '2',
      '--concurrency',
      '4',
    ]
    this.#environment = environment
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get log(): string {
    return this.#log
  }

  /** Resolves when the worker takes jobs. One that is killed, or ended by a server that is away, before that is started again. */
  start(): Promise<void> {
    this.#starting ??= this.#startUntilReady().finally(() => (this.#starting = undefined))
    return this.#starting
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#end('SIGTERM')
    await this.#starting
  }

  async #startUntilReady(): Promise<void> {
    for (let tries = 0; tries < 20 && !this.#stopped; tries++) {
      const child = spawn(process.execPath, [cli, ...this.#options], {
        env: { ...process.env, ...this.#environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      this.#child = child
      child.stderr.on('data', (data: Buffer) => (this.#log = (this.#log + data).slice(-20_000)))
      const ready = once(child.stdout, 'data').then(() => true)
      const ended = once(child, 'exit').then(() => false)
      if (await Promise.race([ready, ended])) return
    }
    if (!this.#stopped) throw new Error(`The worker does not start: ${this.#log}`)
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
}
