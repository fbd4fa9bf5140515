import crypto from 'node:crypto'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import timersPromises from 'node:timers/promises'
import { StemworkError } from '../../src/core/engine/errors.js'

/** A simulated process. Everything it does uses its own clock. */
export interface SimulatedNode {
  name: string
  /** Offset of its date from the world's. */
  skewMs: number
  isDead: boolean
  isFrozen: boolean
  /** Events that were due while it was frozen. */
  postponed: (() => void)[]
}

interface Happening {
  at: number
  order: number
  node: SimulatedNode | undefined
  act: () => void
  isOff: boolean
}

const start = 1_700_000_000_000

/** Random numbers from a seed (mulberry32). */
export function randomFrom(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    chance: (share: number) => next() < share,
    between: (from: number, to: number) => from + Math.floor(next() * (to - from + 1)),
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(next() * items.length)]!,
  }
}
export type Random = ReturnType<typeof randomFrom>

/**
 * A world with its own clock: timers, dates and random values of all code inside come from it. One event happens at a
 * time, in an order that depends only on the seed.
 */
export class World {
  readonly random: Random
  /** The node whose code runs. All that follows from an event without time passing is done before the next event. */
  #here: SimulatedNode | undefined
  #now = 0
  #order = 0
  #ids = 0
  readonly #happenings: Happening[] = []
  #trace = 0
  /** Calls to the real world. Code that catches the error must not hide the call. */
  readonly escapes: string[] = []

  constructor(seed: number) {
    this.random = randomFrom(seed)
  }

  /** Epoch milliseconds of the world, which is the time of its stores. */
  get now(): number {
    return start + this.#now
  }

  get here(): SimulatedNode | undefined {
    return this.#here
  }

  /** Equal for two histories with the same events, at the same times and in the same order. */
  get trace(): number {
    return this.#trace
  }

  note(what: string): void {
    let hash = this.#trace ^ this.#now
    for (let index = 0; index < what.length; index++) hash = Math.imul(hash ^ what.charCodeAt(index), 0x01000193)
    this.#trace = hash
  }

  node(name: string): SimulatedNode {
    return { name, skewMs: 0, isDead: false, isFrozen: false, postponed: [] }
  }

  /** Begins work on a node. */
  on<Result>(node: SimulatedNode, work: () => Result): Result {
    this.#here = node
    return work()
  }

  /** @param node on which it happens; without a node, in the world */
  later(delayMs: number, act: () => void, node?: SimulatedNode): Happening {
    const happening = { at: this.#now + Math.max(0, delayMs), order: this.#order++, node, act, isOff: false }
    let index = this.#happenings.length
    // A heap: its first entry is the next event.
    this.#happenings.push(happening)
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(happening, this.#happenings[parent]!)) break
      this.#happenings[index] = this.#happenings[parent]!
      index = parent
    }
    this.#happenings[index] = happening
    return happening
  }

  freeze(node: SimulatedNode, forMs: number): void {
    if (node.isFrozen) return
    node.isFrozen = true
    this.later(forMs, () => {
      node.isFrozen = false
      for (const act of node.postponed.splice(0)) this.later(0, act, node)
    })
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.later(ms, resolve))
  }

  /** Lets the given time pass. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms
    for (let next = this.#happenings[0]; next && next.at <= until; next = this.#happenings[0]) {
      this.#takeFirst()
      if (next.isOff || next.node?.isDead) continue
      this.#now = Math.max(this.#now, next.at)
      this.note(next.node?.name ?? '')
      this.#here = next.node
      if (next.node?.isFrozen) next.node.postponed.push(next.act)
      else next.act()
      await settled()
    }
    this.#now = until
  }

  /** Lets time pass until a promise is settled. */
  async until<Result>(work: Promise<Result>): Promise<Result> {
    let isDone = false
    const end = () => (isDone = true)
    void work.then(end, end)
    for (await settled(); !isDone;) await this.pass(1)
    return await work
  }

  /** Replaces the real world with this one. @returns restores the real world */
  enter(): () => void {
    const [real, performanceNow, dateNow] = [{ ...pickTimers() }, performance.now, Date.now]
    const { setTimeout: realWait } = timersPromises
    const { randomBytes, randomUUID } = crypto
    const mathRandom = Math.random
    const { timeout } = AbortSignal
    const realFiles = { ...files }
    const timer =
      (repeats: boolean) =>
      (act: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) => {
        const node = this.here
        const handle = { next: undefined as Happening | undefined, unref: () => handle, ref: () => handle }
        const set = () => {
          handle.next = this.later(
            Math.max(1, ms ?? 1),
            () => {
              if (repeats) set()
              act(...given)
            },
            node,
          )
        }
        set()
        return handle
      }
    const clear = (handle?: { next?: Happening }) => void (handle?.next && (handle.next.isOff = true))
    Object.assign(globalThis, {
      setTimeout: timer(false),
      setInterval: timer(true),
      clearTimeout: clear,
      clearInterval: clear,
    })
    Date.now = () => this.now + (this.here?.skewMs ?? 0)
    performance.now = () => this.#now
    Math.random = () => this.random.next()
    const bytes = (size: number) => Buffer.from(Array.from({ length: size }, () => this.random.between(0, 255)))
    crypto.randomBytes = bytes
    crypto.randomUUID = () => `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`
    timersPromises.setTimeout = this.#delay as typeof timersPromises.setTimeout
    AbortSignal.timeout = (ms) => {
      const controller = new AbortController()
      const expire = () => controller.abort(new DOMException('The time is over.', 'TimeoutError'))
      this.later(ms, expire, this.here)
      return controller.signal
    }
    Object.assign(files, this.#noFiles())
    syncBuiltinESMExports()
    return () => {
      Object.assign(globalThis, real)
      Date.now = dateNow
      performance.now = performanceNow
      Math.random = mathRandom
      Object.assign(crypto, { randomBytes, randomUUID })
      timersPromises.setTimeout = realWait
      AbortSignal.timeout = timeout
      Object.assign(files, realFiles)
      syncBuiltinESMExports()
    }
  }

  readonly #delay = <Value>(ms: number, value?: Value, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise<Value | undefined>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const happening = this.later(ms, () => resolve(value), this.here)
      signal?.addEventListener('abort', () => {
        happening.isOff = true
        reject(signal.reason)
      })
    })

  /** The simulated workflows neither read nor write files; a node only checks whether it could. */
  #noFiles(): Partial<typeof files> {
    const refuse = (name: string) => () => {
      this.escapes.push(`the simulation has no files for ${name}`)
      return Promise.reject(new Error(`The simulation has no files for ${name}.`))
    }
    const names = Object.keys(files).filter((name) => name !== 'constants')
    return {
      ...Object.fromEntries(names.map((name) => [name, refuse(name)])),
      mkdir: () => Promise.resolve(undefined),
      access: () => Promise.resolve(),
      readdir: () => Promise.resolve([]),
    }
  }

  #takeFirst(): void {
    const heap = this.#happenings
    const last = heap.pop()!
    if (heap.length === 0) return
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
  }
}

function isBefore(a: Happening, b: Happening): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

function pickTimers() {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis
  return { setTimeout, setInterval, clearTimeout, clearInterval }
}

/** Resolves once everything that follows from the last event, without time passing, has happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

export interface Network {
  /** Whether the node cannot reach the store: it is cut off, or there is an outage. */
  isCut(node: SimulatedNode): boolean
  /** Whether calls hang when the node is cut off, instead of failing at once. */
  hangs: boolean
  /** Share of calls that lose their answer, and of calls that lose their request. */
  losses: number
  onAnswer(node: SimulatedNode): void
}

/** Long enough for Postgres to give up a hanging call. */
const callTimeoutMs = 20_000

/** The object's methods over a network that delays, loses and cuts a node's calls. */
export function remote<Port extends object>(port: Port, node: SimulatedNode, world: World, network: Network): Port {
  const { random } = world
  const call = (method: (...given: unknown[]) => Promise<unknown>, given: unknown[], name: string) =>
    new Promise((resolve, reject) => {
      world.note(name + JSON.stringify(given))
      const fail = () => reject(new StemworkError('STORE_UNAVAILABLE', 'The store is away.', { retryable: true }))
      const late = world.later(callTimeoutMs, fail, node)
      const isLost = random.chance(network.losses)
      const arrive = () => {
        if (network.isCut(node)) {
          if (!network.hangs) world.later(1, fail, node)
          // A hanging call is delivered when the network is back, as by TCP, or never.
          else if (random.chance(0.5)) world.later(1000, arrive)
          return
        }
        if (isLost && random.chance(0.5)) return
        const answer = method(...given)
        const deliver = (act: () => void) => {
          if (isLost || network.isCut(node)) return
          world.later(
            random.between(0, 5),
            () => {
              late.isOff = true
              network.onAnswer(node)
              act()
            },
            node,
          )
        }
        answer.then(
          (value) => deliver(() => resolve(value)),
          (error: unknown) => deliver(() => reject(error)),
        )
      }
      world.later(random.between(0, 5), arrive)
    })
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function'
        ? (...given: unknown[]) => call(value.bind(target), given, String(name))
        : value
    },
  })
}
