import { setImmediate as nextPass } from 'node:timers/promises'

/** Small enough for a few milliseconds, whatever is done with each. */
const itemsAtOnce = 20

/** Maps many items, twenty in each pass of the event loop. */
export async function mapInPasses<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % itemsAtOnce === 0) await nextPass()
    results.push(map(item, index))
  }
  return results
}
