import { ClientError } from '../../client/client.js'

const firstPauseMs = 1000
const longestPauseMs = 15_000

/** Retries, with pauses, as long as only the connection is lost. */
export async function overLostConnections<Value>(
  signal: AbortSignal,
  { attempt, onLost }: { attempt(): Promise<Value>; onLost(): void },
): Promise<Value> {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt()
    } catch (error) {
      signal.throwIfAborted()
      const isLost = ClientError.is(error) && (error.status === 0 || error.status === 502 || error.status === 504)
      if (!isLost || error.code === 'BAD_ANSWER') throw error
      onLost()
      await connectionBack(Math.min(longestPauseMs, firstPauseMs * 2 ** retries), signal)
    }
  }
}

/** Resolves when the browser is online again, after `ms` at the latest. */
function connectionBack(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => () => {
      clearTimeout(timer)
      removeEventListener('online', onOnline)
      signal.removeEventListener('abort', onAbort)
      settle()
    }
    const onOnline = end(resolve)
    const onAbort = end(() => reject(signal.reason))
    const timer = setTimeout(onOnline, ms)
    addEventListener('online', onOnline)
    signal.addEventListener('abort', onAbort)
  })
}
