/**
 * Items in ascending order. Adding at the end (new jobs) costs the push alone; removed items stay in place, unseen,
 * until they are half of the list, so that a removal does not move everything after it.
 *
 * @experimental
 */
export class SortedList<Item extends NonNullable<unknown>> {
  #items: Item[] = []
  readonly #removed = new Set<Item>()
  readonly #compare: (a: Item, b: Item) => number

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length - this.#removed.size
  }

  /** An item that is in the list must not be added again. */
  add(item: Item): void {
    const items = this.#items
    if (this.#removed.delete(item)) return
    const last = items.at(-1)
    if (last === undefined || this.#compare(last, item) < 0) items.push(item)
    else
      items.splice(
        this.#firstIndex((other) => this.#compare(other, item) >= 0),
        0,
        item,
      )
  }

  /** The item must be in the list. */
  remove(item: Item): void {
    this.#removed.add(item)
    if (this.#removed.size * 2 <= this.#items.length) return
    this.#items = this.#items.filter((other) => !this.#removed.has(other))
    this.#removed.clear()
  }

  /** The items from the first one on for which `holds` is true; it must be false before that item and true after it. */
  *ascending(holds: (item: Item) => boolean): Generator<Item> {
    const items = this.#items
    for (let index = this.#firstIndex(holds); index < items.length; index++) {
      const item = items[index]
      if (item !== undefined && !this.#removed.has(item)) yield item
    }
  }

  /** The items backwards from the last one before the first for which `holds` is true. */
  *descendingBefore(holds: (item: Item) => boolean): Generator<Item> {
    const items = this.#items
    for (let index = this.#firstIndex(holds) - 1; index >= 0; index--) {
      const item = items[index]
      if (item !== undefined && !this.#removed.has(item)) yield item
    }
  }

  /** Goes back from the end, where new items belong and readers begin, in growing steps, then bisects the rest. */
  #firstIndex(holds: (item: Item) => boolean): number {
    const holdsAt = (index: number) => {
      const item = this.#items[index]
      return item !== undefined && holds(item)
    }
    let low = 0
    let high = this.#items.length
    for (let step = 1; step <= high; step *= 2) {
      if (!holdsAt(high - step)) {
        low = high - step + 1
        break
      }
      high -= step
    }
    while (low < high) {
      const middle = (low + high) >>> 1
      if (holdsAt(middle)) high = middle
      else low = middle + 1
    }
    return low
  }
}
