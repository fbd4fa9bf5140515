import type { Network, NetworkFacts, NetworkResult } from './network.js'
import type { RuntimeSession } from './runtime-session.js'

/** A network in this thread; its runs are queued. */
export function networkOf(session: RuntimeSession, found: Pick<NetworkFacts, 'runtime' | 'runtimeHint'>): Network {
  let last: Promise<unknown> = Promise.resolve()
  let isOpen = true

  return {
    inputs: session.inputs,
    outputs: session.outputs,
    ...found,
    fallback: session.fallback,
    get isOpen() {
      return isOpen
    },
    run(feeds, fetches) {
      const result = last.then(async (): Promise<NetworkResult> => {
        const startedAt = performance.now()
        await session.run(feeds, fetches)
        return { feeds, fetches, runMs: performance.now() - startedAt }
      })
      last = result.catch(() => undefined)
      return result
    },
    async close() {
      isOpen = false
      await last
      await session.release()
    },
  }
}
