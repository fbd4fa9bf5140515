/** Calls a listener, never twice at once: however often it is woken during a call, one more follows. */
export class Subscription {
  readonly #listener: () => Promise<void>
  readonly #address: string | undefined
  #isPending = false
  #isStopped = false
  #running: Promise<void> | undefined

  constructor(listener: () => Promise<void>, address?: string) {
    this.#listener = listener
    this.#address = address
  }

  /** @param addresses empty: all are meant */
  isMeant(addresses: ReadonlySet<string>): boolean {
    return addresses.size === 0 || this.#address === undefined || addresses.has(this.#address)
  }

  wake(): void {
    this.#isPending = true
    this.#callIfDue()
  }

  /** Resolves when the running call has returned. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  #callIfDue(): void {
    if (this.#isStopped || this.#running || !this.#isPending) return
    this.#isPending = false
    this.#running = Promise.resolve()
      .then(this.#listener)
      .catch(() => {})
      .finally(() => {
        this.#running = undefined
        this.#callIfDue()
      })
  }
}
