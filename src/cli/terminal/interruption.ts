import { exitStatus } from '../command.js'

/** Request of the user or the system to end a command. */
export interface Interruption {
  /** Fires at the first SIGINT or SIGTERM. */
  signal: AbortSignal
  /** Resolves at the same time. Calling it marks the command as started: it may then take its time to stop. */
  stopped(): Promise<void>
  /** Exit status for the signal that was received; undefined if none was. */
  status(): number | undefined
  /** Restores Node's default handling of the signals. */
  release(): void
}

/** How long an unresponsive server may delay the end of an interrupted start. */
const startMs = 3_000

/**
 * Listens for Ctrl-C and a service manager's stop. Calls `again` with the exit status at the second signal and, if the
 * command `starts` something, some seconds after the first, unless `stopped` was called by then.
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
