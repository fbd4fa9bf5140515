/** An item's place in an agenda: kept by whoever entered it. */
export interface AgendaEntry<Item> {
  readonly item: Item
  at: number
  /** Of entering: decides among equal times. */
  readonly order: number
  /** Index in the heap. */
  place: number
}

/**
 * Items by the time at which they are due: a binary heap in which an item's time can be changed in O(log n). The items' owner
 * keeps their entries, so that nothing has to be looked up.
 */
export class Agenda<Item> {
  readonly #heap: AgendaEntry<Item>[] = []
  #nextOrder = 0

  get size(): number {
    return this.#heap.length
  }

  /**
   * Enters the item, moves it, or (with null) takes it out.
   *
   * @param entry what the last call for this item returned
   */
  set(entry: AgendaEntry<Item> | undefined, item: Item, at: number | null): AgendaEntry<Item> | undefined {
    if (at === null) {
      if (entry) this.#remove(entry)
      return undefined
    }
    if (!entry) return this.#push({ item, at, order: this.#nextOrder++, place: 0 })
    if (entry.at !== at) {
      entry.at = at
      this.#rise(entry)
      this.#sink(entry)
    }
    return entry
  }

  /** The item that has been due longest. */
  first(now: number): Item | undefined {
    const top = this.#heap[0]
    return top !== undefined && top.at <= now ? top.item : undefined
  }

  /** Up to `limit` items that are due, longest due first; entered first among equals. */
  due(now: number, limit: number): Item[] {
    const found: AgendaEntry<Item>[] = []
    for (let [top] = this.#heap; top && top.at <= now && found.length < limit; [top] = this.#heap) {
      found.push(top)
      this.#remove(top)
    }
    for (const entry of found) this.#push(entry)
    return found.map((entry) => entry.item)
  }

  #push(entry: AgendaEntry<Item>): AgendaEntry<Item> {
    entry.place = this.#heap.push(entry) - 1
    this.#rise(entry)
    return entry
  }

  #remove({ place }: AgendaEntry<Item>): void {
    const moved = this.#heap.pop()
    if (!moved || place === this.#heap.length) return
    this.#put(moved, place)
    this.#rise(moved)
    this.#sink(moved)
  }

  #rise(entry: AgendaEntry<Item>): void {
    let { place } = entry
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = this.#heap[parent]
      if (!above || isBefore(above, entry)) break
      this.#put(above, place)
      place = parent
    }
    this.#put(entry, place)
  }

  #sink(entry: AgendaEntry<Item>): void {
    const heap = this.#heap
    let { place } = entry
    for (;;) {
      const left = heap[2 * place + 1]
      const right = heap[2 * place + 2]
      const below = left && right && isBefore(right, left) ? right : left
      if (!below || isBefore(entry, below)) break
      const child = below.place
      this.#put(below, place)
      place = child
    }
    this.#put(entry, place)
  }

  #put(entry: AgendaEntry<Item>, place: number): void {
    this.#heap[place] = entry
    entry.place = place
  }
}

function isBefore(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
