import type { Permission } from '../auth/key-watch.js'
import { isStillAllowed } from './authenticate.js'
import type { KeyedCall } from './call.js'

/** Valid until the sender's key ends. The host's own check and links are polled every `limits.heartbeatMs`. */
export function permit({ caller, request, service }: KeyedCall): Permission {
  if (caller.keyId !== undefined) return service.keyWatch.follow(caller.keyId)
  const ended = new AbortController()
  const check = async () => (await isStillAllowed(request, service, caller)) || ended.abort()
  const timer = setInterval(() => void check(), service.options.limits.heartbeatMs).unref()
  return { signal: ended.signal, release: () => clearInterval(timer) }
}

/**
 * Yields the items of `open`, whose signal fires when the client disconnects or is no longer permitted.
 *
 * Not a generator: closing one waits for its next item, so servers that close the body after a disconnect would also
 * need the request's signal. Both together take a kilobyte for each of thousands of streams.
 */
export function whilePermitted<Item>(
  call: KeyedCall,
  open: (signal: AbortSignal) => AsyncIterable<Item>,
): AsyncIterableIterator<Item, void, undefined> {
  return new PermittedItems(call, open)
}

class PermittedItems<Item> implements AsyncIterableIterator<Item, void, undefined> {
  readonly #call: KeyedCall
  readonly #open: (signal: AbortSignal) => AsyncIterable<Item>
  readonly #ending = new AbortController()
  #permission: Permission | undefined
  #items: AsyncIterator<Item> | undefined

  constructor(call: KeyedCall, open: (signal: AbortSignal) => AsyncIterable<Item>) {
    this.#call = call
    this.#open = open
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Item, void>> {
    // Closed before the first read.
    if (!this.#items && this.#ending.signal.aborted) return Promise.resolve({ done: true, value: undefined })
    const items = (this.#items ??= this.#begin())
    return items.next().then(this.#checkEnd, this.#fail)
  }

  async return(): Promise<IteratorResult<Item, void>> {
    this.#ending.abort()
    this.#release()
    await this.#items?.return?.()
    return { done: true, value: undefined }
  }

  #begin(): AsyncIterator<Item> {
    this.#permission = permit(this.#call)
    for (const signal of this.#signals) {
      signal.addEventListener('abort', this.#end)
      if (signal.aborted) this.#end()
    }
    return this.#open(this.#ending.signal)[Symbol.asyncIterator]()
  }

  get #signals(): AbortSignal[] {
    const { request } = this.#call
    const signals = this.#permission ? [this.#permission.signal] : []
    return request.closesBody ? signals : [...signals, request.signal]
  }

  readonly #end = (): void => this.#ending.abort()

  readonly #checkEnd = (result: IteratorResult<Item, void>): IteratorResult<Item, void> => {
    if (result.done) this.#release()
    return result
  }

  readonly #fail = (error: unknown): never => {
    this.#release()
    throw error
  }

  #release(): void {
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#end)
    this.#permission?.release()
    this.#permission = undefined
  }
}
