import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { within } from '../../core/engine/ports/within.js'

/** The part of a Redis client that is used here. */
interface Commands {
  get(key: string): Promise<string | null>
  set(key: string, value: string, options?: { PX: number; NX: boolean }): Promise<string | null>
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

const key = 'stemwork:owner'
/** Names the latest owner permanently: its changes are unknown to the owner before it. */
const latest = 'stemwork:latest-owner'
const leaseMs = 30_000
const ofOwner = (command: string) => `return redis.call('GET', KEYS[1]) == ARGV[1] and ${command}`
const removed = ofOwner("redis.call('DEL', KEYS[1])")
/** Renews the lock, even after its expiry, unless another process has or had it: then returns that owner. */
const renewed = `
  local owner = redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])
  if owner and owner ~= ARGV[1] then return owner end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ${leaseMs})`

/** Lock that one process at a time holds in a Redis database. Keyv has no conditional writes for that. */
export class RedisLock {
  readonly #connect: () => Promise<Commands>
  readonly #lost: (owner: string) => void
  readonly #own = `${hostname()}:${process.pid}#${randomUUID()}`
  #timer: NodeJS.Timeout | undefined

  /** @param lost called with the owner that took the lock while this process was suspended or could not reach Redis */
  constructor(connect: () => Promise<unknown>, lost: (owner: string) => void) {
    this.#connect = async () => (await connect()) as Commands
    this.#lost = lost
  }

  /** @returns the owner that holds the lock; undefined once it is taken, also from an owner that has ended */
  async take(hasEnded: (owner: string) => boolean): Promise<string | undefined> {
    const client = await this.#connect()
    while ((await client.set(key, this.#own, { PX: leaseMs, NX: true })) === null) {
      const owner = await client.get(key)
      if (owner === null) continue
      if (!hasEnded(owner)) return owner
      await client.eval(removed, { keys: [key], arguments: [owner] })
    }
    await client.set(latest, this.#own)
    const renew = async () => {
      const owner = await client.eval(renewed, { keys: [key, latest], arguments: [this.#own] }).catch(() => null)
      if (typeof owner === 'string' && this.#timer) this.#lost(owner)
    }
    this.#timer = setInterval(() => void renew(), leaseMs / 10).unref()
    return undefined
  }

  async release(): Promise<void> {
    if (!this.#timer) return
    clearInterval(this.#timer)
    const removing = this.#connect().then((client) => client.eval(removed, { keys: [key], arguments: [this.#own] }))
    // A lost server must not keep the process alive; the lock expires by itself.
    await within(removing, 1_000, () => new Error('late')).catch(() => {})
  }
}
