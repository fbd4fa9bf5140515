import { rested, type Turn } from './rested.js'

/** Few enough to block the event loop for a few milliseconds only, whatever `map` does. */
const itemsAtOnce = 20

/** Maps many items, twenty in each turn. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result,
  turn: Turn = rested,
): Promise<Result[]> {
  const results: Result[] = []
  for (let first = 0; first < items.length; first += itemsAtOnce) {
    const part = items.slice(first, first + itemsAtOnce)
    const mapped = await turn(async (spent) => {
      // Only the synchronous part counts as time spent.
      spent?.(0)
      return part.map((item, index) => map(item, first + index))
    })
    results.push(...mapped)
  }
  return results
}
