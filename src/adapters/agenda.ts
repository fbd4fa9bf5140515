/** Items by the time at which they are due: a binary heap in which an item's time can be changed in O(log n). */
export class Agenda<Item> {
  readonly #heap: { item: Item; at: number; order: number }[] = []
  readonly #places = new Map<Item, number>()
  #nextOrder = 0

  /** Enters the item, moves it, or (with null) takes it out. */
  set(item: Item, at: number | null): void {
    const place = this.#places.get(item)
    if (at === null) {
      if (place !== undefined) this.#removeAt(place)
    } else if (place === undefined) {
      this.#heap.push({ item, at, order: this.#nextOrder++ })
      this.#rise(this.#heap.length - 1)
    } else if (this.#heap[place].at !== at) {
      this.#heap[place].at = at
      this.#sink(this.#rise(place))
    }
  }

  /** The item that has been due longest. */
  first(now: number): Item | undefined {
    const top = this.#heap[0]
    return top !== undefined && top.at <= now ? top.item : undefined
  }

  /** Up to `limit` items that are due, longest due first; entered first among equals. */
  due(now: number, limit: number): Item[] {
    const found: { item: Item; at: number; order: number }[] = []
    while (found.length < limit && this.#heap.length > 0 && this.#heap[0].at <= now) {
      found.push(this.#heap[0])
      this.#removeAt(0)
    }
    for (const entry of found) {
      this.#heap.push(entry)
      this.#rise(this.#heap.length - 1)
    }
    return found.map((entry) => entry.item)
  }

  #removeAt(place: number): void {
    const last = this.#heap.length - 1
    this.#places.delete(this.#heap[place].item)
    const moved = this.#heap[last]
    this.#heap.pop()
    if (place === last) return
    this.#heap[place] = moved
    this.#sink(this.#rise(place))
  }

  #rise(start: number): number {
    const heap = this.#heap
    const entry = heap[start]
    let place = start
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (isBefore(heap[parent], entry)) break
      heap[place] = heap[parent]
      this.#places.set(heap[place].item, place)
      place = parent
    }
    heap[place] = entry
    this.#places.set(entry.item, place)
    return place
  }

  #sink(start: number): void {
    const heap = this.#heap
    const entry = heap[start]
    let place = start
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++
      if (isBefore(entry, heap[child])) break
      heap[place] = heap[child]
      this.#places.set(heap[place].item, place)
      place = child
    }
    if (place === start) return
    heap[place] = entry
    this.#places.set(entry.item, place)
  }
}

function isBefore(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
