import { setTimeout as sleep } from 'node:timers/promises'
import type { RandomSource } from '../../../src/contract/random-source.js'

/** A Keyv backend in memory whose answers each take a random time, so that operations can overtake each other. */
export class DelayingMap {
  readonly opts = {}
  readonly entries = new Map<string, unknown>()
  readonly #random: RandomSource
  readonly #maxDelayMs: number

  constructor(random: RandomSource, maxDelayMs: number) {
    this.#random = random
    this.#maxDelayMs = maxDelayMs
  }

  async get(key: string): Promise<unknown> {
    await this.#wait()
    const value = this.entries.get(key)
    await this.#wait()
    return value
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.#wait()
    this.entries.set(key, value)
    await this.#wait()
  }

  async delete(key: string): Promise<boolean> {
    await this.#wait()
    const removed = this.entries.delete(key)
    await this.#wait()
    return removed
  }

  async clear(): Promise<void> {
    this.entries.clear()
  }

  on(): this {
    return this
  }

  async #wait(): Promise<void> {
    if (this.#maxDelayMs > 0) await sleep(this.#random() * this.#maxDelayMs)
  }
}
