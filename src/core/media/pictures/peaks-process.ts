import { type ChildProcess, fork } from 'node:child_process'
import { installedScript } from '../../engine/package-files.js'

/** Longest time for one file; an hour of FLAC takes about a minute on a slow machine. */
const timeoutMs = 5 * 60_000
/** Time for which an idle process is kept. */
const keptMs = 10_000

/** The child's answer: `null` for a file that holds no audio. */
export type PeaksAnswer = { json: string | null }

/** A child process that measures one file after another. It does not keep an otherwise idle host running. */
export class PeaksProcess {
  readonly #child: ChildProcess
  #timer: NodeJS.Timeout | undefined
  readonly #forget: () => void
  #onEnd: () => void = () => {}

  /** @param onEnd called before the process ends by itself, and when it has ended: it takes no more files */
  constructor(onEnd: (ended: PeaksProcess) => void) {
    this.#forget = () => onEnd(this)
    this.#child = fork(installedScript('core/media/pictures/audio-peaks-child.js'), {
      // It decodes untrusted files, and gets none of the host's secrets, loaders and debuggers.
      env: { SystemRoot: process.env['SystemRoot'] },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const end = () => {
      clearTimeout(this.#timer)
      this.#forget()
      this.#onEnd()
    }
    this.#child.once('error', end).once('exit', end)
    this.#refer(false)
  }

  get isAlive(): boolean {
    return this.#child.connected
  }

  /** `undefined`: the file cannot be read, or ended the process. @throws the signal's reason, and ends the process */
  async measure(path: string, signal: AbortSignal): Promise<string | undefined> {
    signal.throwIfAborted()
    const kill = () => void this.#child.kill('SIGKILL')
    this.#endAfter(timeoutMs)
    this.#refer(true)
    signal.addEventListener('abort', kill, { once: true })
    try {
      const answer = await this.#ask(path)
      signal.throwIfAborted()
      return answer?.json ?? undefined
    } finally {
      signal.removeEventListener('abort', kill)
      this.#child.removeAllListeners('message')
      this.#refer(false)
      this.#endAfter(keptMs)
    }
  }

  #ask(path: string): Promise<PeaksAnswer | undefined> {
    return new Promise((resolve) => {
      this.#onEnd = () => resolve(undefined)
      this.#child.once('message', (answer) => resolve(answer as PeaksAnswer))
      this.#child.send(path, (error) => error && resolve(undefined))
    })
  }

  #endAfter(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#forget()
      this.#child.kill('SIGKILL')
    }, ms).unref()
  }

  #refer(isBusy: boolean): void {
    const change = isBusy ? 'ref' : 'unref'
    this.#child[change]()
    this.#child.channel?.[change]()
  }
}
