/** An item and its index in the heap of a due queue; kept by the item's owner. */
export interface DueEntry<Item> {
  readonly item: Item
  at: number
  /** Order of entry: breaks ties. */
  readonly order: number
  /** Index in the heap. */
  index: number
}

/**
 * Items by the time at which they are due: a binary heap in which an item's time can be changed in O(log n). The items'
 * owner keeps their entries, so that nothing has to be looked up.
 */
export class DueQueue<Item> {
  readonly #heap: DueEntry<Item>[] = []
  readonly #nextOrder: () => number

  /** @param nextOrder returns rising numbers, for queues whose entries are compared with those of others */
  constructor(nextOrder?: () => number) {
    let entered = 0
    this.#nextOrder = nextOrder ?? (() => entered++)
  }

  get size(): number {
    return this.#heap.length
  }

  /**
   * Enters the item, moves it, or (with null) removes it.
   *
   * @param entry the result of the last call for this item
   */
  set(entry: DueEntry<Item> | undefined, item: Item, at: number | null): DueEntry<Item> | undefined {
    if (at === null) {
      if (entry) this.#remove(entry)
      return undefined
    }
    if (!entry) return this.#push({ item, at, order: this.#nextOrder(), index: 0 })
    if (entry.at !== at) {
      entry.at = at
      this.#rise(entry)
      this.#sink(entry)
    }
    return entry
  }

  /** Number of due items. Looks at all items. */
  countDue(now: number): number {
    return this.#heap.reduce((count, { at }) => count + Number(at <= now), 0)
  }

  /** Up to `limit` items that are due, longest due first; entered first among equals. */
  due(now: number, limit: number): Item[] {
    return this.dueEntries(now, limit).map((entry) => entry.item)
  }

  /** The entries of the items that `due` returns. */
  dueEntries(now: number, limit: number): DueEntry<Item>[] {
    const [first] = this.#heap
    if (limit === 1) return first && first.at <= now ? [first] : []
    const found: DueEntry<Item>[] = []
    for (let [top] = this.#heap; top && top.at <= now && found.length < limit; [top] = this.#heap) {
      found.push(top)
      this.#remove(top)
    }
    for (const entry of found) this.#push(entry)
    return found
  }

  #push(entry: DueEntry<Item>): DueEntry<Item> {
    entry.index = this.#heap.push(entry) - 1
    this.#rise(entry)
    return entry
  }

  #remove({ index }: DueEntry<Item>): void {
    const moved = this.#heap.pop()
    if (!moved || index === this.#heap.length) return
    this.#put(moved, index)
    this.#rise(moved)
    this.#sink(moved)
  }

  #rise(entry: DueEntry<Item>): void {
    let { index } = entry
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = this.#heap[parent]
      if (!above || isBefore(above, entry)) break
      this.#put(above, index)
      index = parent
    }
    this.#put(entry, index)
  }

  #sink(entry: DueEntry<Item>): void {
    const heap = this.#heap
    let { index } = entry
    for (;;) {
      const left = heap[2 * index + 1]
      const right = heap[2 * index + 2]
      const below = left && right && isBefore(right, left) ? right : left
      if (!below || isBefore(entry, below)) break
      const child = below.index
      this.#put(below, index)
      index = child
    }
    this.#put(entry, index)
  }

  #put(entry: DueEntry<Item>, index: number): void {
    this.#heap[index] = entry
    entry.index = index
  }
}

export function isBefore(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
