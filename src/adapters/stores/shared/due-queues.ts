import type { DeliverablePage } from '../../../core/engine/ports/job-store.js'
import { type DueEntry, DueQueue } from './due-queue.js'

/** A due queue for each application, so that the long queue of one hides no items of another. */
export class DueQueues<Item> {
  readonly #queues = new Map<string, DueQueue<Item>>()
  #entered = 0

  /** See `DueQueue.set`. */
  set(app: string, entry: DueEntry<Item> | undefined, item: Item, at: number | null): DueEntry<Item> | undefined {
    if (at === null && !entry) return undefined
    const queue = this.#queues.get(app) ?? new DueQueue<Item>(() => this.#entered++)
    const entered = queue.set(entry, item, at)
    if (queue.size > 0) this.#queues.set(app, queue)
    else this.#queues.delete(app)
    return entered
  }

  /** Items that are due, longest due first. */
  due(now: number, { limit, perApp, exceptApps }: DeliverablePage): Item[] {
    const excepted = new Set(exceptApps)
    const found: DueEntry<Item>[] = []
    for (const [app, queue] of this.#queues)
      if (!excepted.has(app)) found.push(...queue.dueEntries(now, Math.min(limit, perApp)))
    found.sort((one, other) => one.at - other.at || one.order - other.order)
    return found.slice(0, Math.max(limit, 0)).map(({ item }) => item)
  }
}
