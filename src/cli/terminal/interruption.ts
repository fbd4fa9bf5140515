import { exitStatus } from '../command.js'

/** A command that ends because the user or the system asked for it. */
export interface Interruption {
  /** Fires at the first SIGINT or SIGTERM. */
  signal: AbortSignal
  /** Resolves at the same time. By calling it, a command says that it has started: it then stops in its own time. */
  stopped(): Promise<void>
  /** Exit status for the signal that was received; undefined if none was. */
  status(): number | undefined
  /** Gives the signals back to Node's default. */
  release(): void
}

/** For which a server that does not answer may hold a start that is no longer wanted. */
const startMs = 3_000

/**
 * Listens for Ctrl-C and a service manager's stop. `again` is called with the exit status at the second one, and, if
 * the command `starts` something, some seconds after the first one unless it has called `stopped`.
 */
export function onInterruption(again: (status: number) => void, { starts = false } = {}): Interruption {
  const controller = new AbortController()
  let status: number | undefined
  let hasStarted = !starts
  const take = (name: 'SIGINT' | 'SIGTERM') => {
    const of = name === 'SIGINT' ? exitStatus.interrupted : exitStatus.terminated
    if (status !== undefined) return again(of)
    status = of
    controller.abort(new Error(`stopped by ${name}`))
    if (!hasStarted) setTimeout(() => hasStarted || again(of), startMs).unref()
  }
  process.on('SIGINT', take).on('SIGTERM', take)
  const { signal } = controller
  const stopping = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  const stopped = () => {
    hasStarted = true
    return stopping
  }
  const release = () => void process.off('SIGINT', take).off('SIGTERM', take)
  return { signal, stopped, status: () => status, release }
}
