import { hash } from 'node:crypto'
import type { Keyv } from 'keyv'
import type { z } from 'zod'
import { invalidOptions, requireOption, StemworkError, storeUnavailable } from '../../../core/engine/errors.js'

/**
 * A Keyv instance whose answers are checked: by default, Keyv answers "not there" when its backend is down, writes
 * `false` for a write that failed, and may make every entry expire.
 */
export class Backend {
  static readonly #known = new WeakMap<Keyv, Backend>()
  /** The first instance over each backend. */
  static readonly #owners = new WeakMap<object, Keyv>()

  /**
   * Returns the one backend of a Keyv instance, which is set to throw, and to whose `error` events it listens.
   *
   * @throws StemworkError `INVALID_OPTIONS` without an instance, and if another instance with another namespace has the
   * same backend.
   */
  static of(options: { keyv: Keyv }): Backend {
    const { keyv } = options ?? {}
    requireOption(typeof keyv?.get === 'function', options, 'keyvStores({ keyv })', 'a Keyv of the package keyv')
    const known = this.#known.get(keyv)
    if (known) return known
    const store: unknown = keyv.store
    if (keepsNamespace(store)) {
      const owner = this.#owners.get(store) ?? keyv
      if (owner.namespace !== keyv.namespace) throw sharedBackend(owner.namespace, keyv.namespace)
      this.#owners.set(store, owner)
    }
    const backend = new Backend(keyv)
    this.#known.set(keyv, backend)
    return backend
  }

  readonly #keyv: Keyv
  #lastError: unknown
  #errors = 0

  private constructor(keyv: Keyv) {
    this.#keyv = keyv
    keyv.throwOnErrors = true
    // Backends with a switch of their own (@keyv/redis) swallow errors before Keyv sees them.
    const store: unknown = keyv.store
    if (typeof store === 'object' && store !== null && 'throwOnErrors' in store) store.throwOnErrors = true
    keyv.on('error', (error: unknown) => {
      this.#errors++
      this.#lastError = error
    })
  }

  async read(key: string): Promise<string | undefined> {
    const value = await this.#call(() => this.#keyv.get<unknown>(key))
    return text(key, value)
  }

  async readMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    const store: unknown = this.#keyv.store
    // If the backend has no getMany, Keyv's own turns errors into absent values.
    if (typeof (store as { getMany?: unknown } | null)?.getMany !== 'function')
      return Promise.all(keys.map((key) => this.read(key)))
    if (keys.length === 0) return []
    const values = await this.#call(() => this.#keyv.getMany<unknown>([...keys]))
    return keys.map((key, index) => text(key, values[index]))
  }

  /** @param ttlMs 0: no expiry, whatever the instance's default is. */
  async write(key: string, value: string, ttlMs = 0): Promise<void> {
    await this.#call(
      () => this.#keyv.set(key, value, ttlMs),
      (written) => written,
    )
  }

  async remove(key: string): Promise<void> {
    await this.#call(() => this.#keyv.delete(key))
  }

  async #call<Result>(
    operation: () => Promise<Result>,
    isDone: (result: Result) => boolean = () => true,
  ): Promise<Result> {
    const { store, namespace } = this.#keyv as { store: unknown; namespace?: string }
    if (keepsNamespace(store) && store.namespace !== namespace) throw sharedBackend(namespace, store.namespace)
    const errorsBefore = this.#errors
    let result: Result
    try {
      result = await operation()
    } catch (error) {
      throw unavailable(error)
    }
    // Some backends report an error as an event and answer as if nothing had happened.
    if (this.#errors !== errorsBefore) throw unavailable(this.#lastError)
    if (!isDone(result)) throw unavailable(undefined)
    return result
  }
}

/** Keyv writes its namespace into its backend, and the backend puts it before every key. A Map is given whole keys. */
function keepsNamespace(store: unknown): store is { namespace: string | undefined } {
  return typeof store === 'object' && store !== null && !(store instanceof Map) && 'namespace' in store
}

function sharedBackend(own: string | undefined, other: string | undefined): StemworkError {
  return invalidOptions(
    `One Keyv backend is used by two Keyv instances, with the namespaces "${own}" and "${other}". A backend has ` +
      'only one namespace, that of the instance created last, so a change of order would lose the entries of the ' +
      'other. Give each Keyv its own backend (new KeyvRedis(...) twice), or use one Keyv for both stores.',
  )
}

/**
 * A key part that stands for `name`: short, of characters that every backend tells apart, even one that ignores case.
 */
export function keyPart(name: string): string {
  return /^[a-z0-9._-]{1,64}$/.test(name) ? name : `~${hash('sha256', name)}`
}

function text(key: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  throw damaged(key, new TypeError(`A string was expected, not a value of type ${typeof value}.`))
}

/** Parses an entry. @throws StemworkError `STORE_UNAVAILABLE` for text that this library did not write */
export function parsed<Value>(schema: z.ZodType<Value>, key: string, text: string | undefined): Value | undefined {
  if (text === undefined) return undefined
  try {
    return schema.parse(JSON.parse(text))
  } catch (error) {
    throw damaged(key, error)
  }
}

export function damaged(key: string, cause: unknown): StemworkError {
  return storeUnavailable(
    `The Keyv entry ${key} is not one that this library wrote. Give the store its own namespace, or restore the ` +
      'entry from a backup.',
    { cause },
  )
}

function unavailable(cause: unknown): StemworkError {
  return storeUnavailable('The Keyv store could not read or write an entry. Check its backend, then try again.', {
    retryable: true,
    cause,
  })
}
