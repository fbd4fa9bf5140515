import { DueQueue, type DueEntry } from './due-queue.js'

/** What waits, in the order in which it is claimed: applications take turns, and inside one the first due comes first. */
export class ClaimOrder<Item> {
  /** A Map iterates in insertion order: the order of coming here, that of the last turn below. */
  readonly #unserved = new Map<string, DueQueue<Item>>()
  readonly #served = new Map<string, DueQueue<Item>>()

  /** Enters the item, moves it, or (with null) takes it out; `entry` is what the last call for this item returned. */
  set(app: string, entry: DueEntry<Item> | undefined, item: Item, at: number | null): DueEntry<Item> | undefined {
    let queue = this.#unserved.get(app) ?? this.#served.get(app)
    if (!queue) {
      if (at === null) return undefined
      this.#unserved.set(app, (queue = new DueQueue()))
    }
    return queue.set(entry, item, at)
  }

  /** The next item that is due, not in `taken` and of none of `exceptApps`. Counts as its application's turn. */
  take(now: number, taken: ReadonlySet<Item>, exceptApps: readonly string[]): Item | undefined {
    for (const queues of [this.#unserved, this.#served]) {
      for (const [app, queue] of queues) {
        if (exceptApps.includes(app)) continue
        const item = firstDue(queue, now, taken)
        if (item === undefined) {
          // All others that wait are served later than it was: nothing is lost by forgetting it.
          if (queue.size === 0) queues.delete(app)
          continue
        }
        queues.delete(app)
        this.#served.set(app, queue)
        return item
      }
    }
    return undefined
  }
}

/** The item that has been due longest and is not in `taken`. */
export function firstDue<Item>(queue: DueQueue<Item>, now: number, taken: ReadonlySet<Item>): Item | undefined {
  if (taken.size === 0) return queue.first(now)
  return queue.due(now, taken.size + 1).find((item) => !taken.has(item))
}
