import type { Permission } from '../auth/key-watch.js'
import { isStillAllowed } from './authenticate.js'
import type { KeyedCall } from './call.js'

/** Valid until the sender's key ends. If the host identifies senders, it is asked every `limits.heartbeatMs`. */
export function permit({ caller, request, service }: KeyedCall): Permission {
  if (caller.keyId !== undefined) return service.keyWatch.follow(caller.keyId)
  const ended = new AbortController()
  const check = async () => (await isStillAllowed(request, service, caller)) || ended.abort()
  const timer = setInterval(() => void check(), service.options.limits.heartbeatMs).unref()
  return { signal: ended.signal, release: () => clearInterval(timer) }
}

/** Yields what `open` does. The signal fires when the client has gone, or is no longer permitted. */
export async function* whilePermitted<Item>(
  call: KeyedCall,
  open: (signal: AbortSignal) => AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  const permission = permit(call)
  const ending = new AbortController()
  const end = () => ending.abort()
  const signals = [call.request.signal, permission.signal]
  for (const signal of signals) signal.addEventListener('abort', end)
  if (signals.some(({ aborted }) => aborted)) end()
  try {
    yield* open(ending.signal)
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', end)
    permission.release()
  }
}
