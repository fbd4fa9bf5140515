import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

/** Keeps a program running, as a supervisor does, and lets its owner kill or stop it. */
export class NodeProcess {
  readonly #command: readonly string[]
  readonly #environment: NodeJS.ProcessEnv
  #child: ChildProcess | undefined
  #keeping: Promise<void> | undefined
  #isStopped = false
  #ready = newGate()
  #log = ''
  /** The last output of each process that exited unexpectedly after it had been ready. */
  readonly unexpectedExits: string[] = []
  /** Process ids so far. */
  readonly pids = new Set<number>()

  /** @param command a Node.js script and its arguments; it is ready once it writes to its standard output */
  constructor(command: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    this.#command = command
    this.#environment = environment
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** The end of its standard error. */
  get log(): string {
    return this.#log
  }

  /** Resolves when the program is ready. A program that exits, for example because a server is down, is restarted. */
  async start(): Promise<void> {
    this.#keeping ??= this.#keep()
    await this.#ready.opened
  }

  /** Kills the program with -9; it is restarted. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Suspends the program until `resume`; it does not notice the time in between. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Ends the program for good; true if it exited by itself within the time. */
  async stop(timeoutMs = 60_000): Promise<boolean> {
    this.#isStopped = true
    const timer = new AbortController()
    const late = delay(timeoutMs, false, { signal: timer.signal }).catch(() => false)
    const isDone = await Promise.race([this.#end('SIGTERM').then(() => true), late])
    timer.abort()
    if (!isDone) await this.#end('SIGKILL')
    await this.#keeping
    return isDone
  }

  async #keep(): Promise<void> {
    while (!this.#isStopped) {
      const child = spawn(process.execPath, this.#command, {
        env: { ...process.env, ...this.#environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      this.#child = child
      if (child.pid !== undefined) this.pids.add(child.pid)
      const ready = this.#ready
      child.stderr.on('data', (data: Buffer) => (this.#log = (this.#log + data.toString()).slice(-20_000)))
      child.stdout.once('data', () => ready.open())
      const [code] = (await once(child, 'exit')) as [number | null]
      if (ready.isOpen && code !== null && !this.#isStopped)
        this.unexpectedExits.push(`status ${code}: ${this.#log.slice(-1500)}`)
      if (ready.isOpen) this.#ready = newGate()
      if (!this.#isStopped && code !== null) await delay(300)
    }
    this.#ready.open()
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
}

interface Gate {
  readonly isOpen: boolean
  readonly opened: Promise<void>
  open(): void
}

function newGate(): Gate {
  let isOpen = false
  let resolve = () => {}
  const opened = new Promise<void>((done) => (resolve = done))
  return {
    get isOpen() {
      return isOpen
    },
    opened,
    open() {
      isOpen = true
      resolve()
    },
  }
}
