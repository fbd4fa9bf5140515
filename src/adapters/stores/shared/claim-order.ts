import { type DueEntry, DueQueue, isBefore } from './due-queue.js'

/** The list in which a job waits. It never changes. */
export interface WaitingGroup {
  app: string
  workflow: string
  pool: string
  priority: number
}

interface List<Item> extends WaitingGroup {
  queue: DueQueue<Item>
}

/**
 * Waiting items in the order in which they are claimed: applications take turns; within one, priority comes first, then
 * time.
 */
export class ClaimOrder<Item> {
  /** A Map iterates in insertion order: here that of arrival, below that of the last turn. */
  readonly #unserved = new Map<string, Map<string, List<Item>>>()
  readonly #served = new Map<string, Map<string, List<Item>>>()
  #entered = 0

  /** Enters the item, moves it, or (with null) removes it; `entry` is the result of the last call for this item. */
  set(
    group: WaitingGroup,
    entry: DueEntry<Item> | undefined,
    item: Item,
    at: number | null,
  ): DueEntry<Item> | undefined {
    const { app, workflow, pool, priority } = group
    let lists = this.#unserved.get(app) ?? this.#served.get(app)
    if (!lists) {
      if (at === null) return undefined
      this.#unserved.set(app, (lists = new Map()))
    }
    const key = `${priority} ${workflow}\n${pool}`
    let list = lists.get(key)
    if (!list) {
      if (at === null) return undefined
      lists.set(key, (list = { app, workflow, pool, priority, queue: new DueQueue(() => this.#entered++) }))
    }
    return list.queue.set(entry, item, at)
  }

  /**
   * Takes the next item that is due, not in `taken`, and in a group that is open. Counts as its application's turn.
   *
   * @param isRunning whether a job of the application runs, so that it keeps its place among the others
   */
  take(
    now: number,
    taken: ReadonlySet<Item>,
    isOpen: (group: Omit<WaitingGroup, 'priority'>) => boolean,
    isRunning: (app: string) => boolean,
  ): Item | undefined {
    for (const apps of [this.#unserved, this.#served]) {
      for (const [app, lists] of apps) {
        const first = this.#firstOf(lists, now, taken, isOpen)
        if (first === undefined) {
          // All others that wait were served later, so nothing is lost by forgetting this one.
          if (lists.size === 0 && !isRunning(app)) apps.delete(app)
          continue
        }
        apps.delete(app)
        this.#served.set(app, lists)
        return first.item
      }
    }
    return undefined
  }

  /** Due items of the application that come before the given one, counted up to `max`. */
  ahead({ app, priority }: WaitingGroup, entry: DueEntry<Item>, now: number, max: number): number {
    let count = 0
    for (const list of (this.#unserved.get(app) ?? this.#served.get(app))?.values() ?? []) {
      if (list.priority < priority || count >= max) continue
      const until = list.priority > priority ? now : Math.min(now, entry.at)
      for (const other of list.queue.dueEntries(until, max - count + 1))
        if (list.priority > priority || isBefore(other, entry)) count++
    }
    return Math.min(count, max)
  }

  /** The items that `take` would return one after the other, if all groups were open; at most `max`. */
  upcoming(now: number, max: number): Item[] {
    // However many items wait, this looks at no more than four times as many as are wanted.
    for (let most = 1; ; most *= 2) {
      const queues = [...this.#unserved.values(), ...this.#served.values()].map((lists) =>
        [...lists.values()]
          .flatMap(({ priority, queue }) => queue.dueEntries(now, most).map((entry) => ({ priority, entry })))
          .sort((a, b) => b.priority - a.priority || (isBefore(a.entry, b.entry) ? -1 : 1)),
      )
      const found: Item[] = []
      for (let turn = 0; turn < most && found.length < max; turn++)
        found.push(...queues.flatMap((queue) => queue[turn]?.entry.item ?? []).slice(0, max - found.length))
      if (found.length === max || most >= max) return found
    }
  }

  /** Items that are due, by group except application and priority, counted up to `max` each. */
  backlog(now: number, max: number): { workflow: string; pool: string; queued: number; firstAt: number }[] {
    const lanes = new Map<string, { workflow: string; pool: string; queued: number; firstAt: number }>()
    for (const lists of [...this.#unserved.values(), ...this.#served.values()]) {
      for (const { workflow, pool, queue } of lists.values()) {
        const [first] = queue.dueEntries(now, 1)
        if (!first) continue
        const key = `${workflow}\n${pool}`
        const lane = lanes.get(key) ?? { workflow, pool, queued: 0, firstAt: Infinity }
        const queued = Math.min(max, lane.queued + queue.countDue(now))
        lanes.set(key, { ...lane, queued, firstAt: Math.min(lane.firstAt, first.at) })
      }
    }
    return [...lanes.values()]
  }

  #firstOf(
    lists: Map<string, List<Item>>,
    now: number,
    taken: ReadonlySet<Item>,
    isOpen: (group: Omit<WaitingGroup, 'priority'>) => boolean,
  ): DueEntry<Item> | undefined {
    let best: { list: List<Item>; entry: DueEntry<Item> } | undefined
    for (const [key, list] of lists) {
      if (list.queue.size === 0) {
        lists.delete(key)
        continue
      }
      if (best && list.priority < best.list.priority) continue
      const entry = isOpen(list) ? firstEntryDue(list.queue, now, taken) : undefined
      if (entry && (!best || list.priority > best.list.priority || isBefore(entry, best.entry))) best = { list, entry }
    }
    return best?.entry
  }
}

/** The entry that has been due longest and whose item is not in `taken`. */
function firstEntryDue<Item>(queue: DueQueue<Item>, now: number, taken: ReadonlySet<Item>): DueEntry<Item> | undefined {
  if (taken.size === 0) return queue.dueEntries(now, 1)[0]
  return queue.dueEntries(now, taken.size + 1).find(({ item }) => !taken.has(item))
}
