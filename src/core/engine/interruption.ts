/**
 * What ends work early. An `AbortController` for those who start thousands of short jobs a second: making an `AbortSignal` takes
 * longer than a job that does nothing, so there is none until somebody asks for it.
 */
export class Interruption {
  #controller: AbortController | undefined
  #ended: { reason: Error } | undefined

  /** Why the work is to end; `undefined` while it may go on. */
  get reason(): Error | undefined {
    return this.#ended?.reason
  }

  /** For code that takes a signal, and for that of others. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#ended) this.#controller.abort(this.#ended.reason)
    }
    return this.#controller.signal
  }

  /** Only the first call counts. */
  abort(reason: Error): void {
    if (this.#ended) return
    this.#ended = { reason }
    this.#controller?.abort(reason)
  }

  throwIfAborted(): void {
    if (this.#ended) throw this.#ended.reason
  }
}
