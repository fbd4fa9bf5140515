import { exitStatus } from './command.js'

/** A command that ends because the user or the system asked for it. */
export interface Interruption {
  /** Fires at the first SIGINT or SIGTERM. */
  signal: AbortSignal
  /** Resolves at the same time. */
  stopped: Promise<void>
  /** Exit status for the signal that was received; undefined if none was. */
  status(): number | undefined
  /** Gives the signals back to Node's default. */
  release(): void
}

/** Listens for Ctrl-C and a service manager's stop. `again` is called with the exit status at the second one. */
export function onInterruption(again: (status: number) => void): Interruption {
  const controller = new AbortController()
  let status: number | undefined
  const take = (name: 'SIGINT' | 'SIGTERM') => {
    const of = name === 'SIGINT' ? exitStatus.interrupted : exitStatus.terminated
    if (status !== undefined) return again(of)
    status = of
    controller.abort(new Error(`stopped by ${name}`))
  }
  process.on('SIGINT', take).on('SIGTERM', take)
  const { signal } = controller
  const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  return { signal, stopped, status: () => status, release: () => void process.off('SIGINT', take).off('SIGTERM', take) }
}
