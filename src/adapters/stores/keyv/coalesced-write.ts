/** Writes one value at a time; all who ask while a write runs share the next one. */
export class CoalescedWrite {
  readonly #write: () => Promise<void>
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  /** @param write stores the value as it is when it is called. */
  constructor(write: () => Promise<void>) {
    this.#write = write
  }

  /** Resolves once a write that began after this call has ended. */
  request(): Promise<void> {
    if (!this.#running) return this.#start()
    // The running write may have taken the value before the caller changed it.
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined
        return this.#start()
      })
    return this.#next
  }

  #start(): Promise<void> {
    const running = this.#write().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }
}
