/** After this time without an answer, a batch no longer blocks others: its connection may hang. */
const patienceMs = 1000

export interface BatchOptions {
  maxItems: number
  /** Batches running at a time. */
  parallel: number
  /** Whether a batch failed because of one of its items: then each is done alone, and only that one fails. */
  isItemsFault?(error: unknown): boolean
}

/**
 * Calls that come while others are running are gathered into one batch, as in a group commit: a lone call is not
 * delayed beyond its turn of the event loop, and under load the cost of a round trip is shared.
 *
 * @param run returns a result per item, in their order
 */
export function batched<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  { maxItems, parallel, isItemsFault = () => false }: BatchOptions,
): (item: Item) => Promise<Result> {
  interface Entry {
    item: Item
    resolve(result: Result): void
    reject(error: unknown): void
  }
  let waiting: Entry[] = []
  let running = 0
  let planned = false

  return (item) =>
    new Promise<Result>((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      plan()
    })

  function plan(): void {
    if (planned || running >= parallel || waiting.length === 0) return
    planned = true
    // Not a microtask: all calls that one read from a socket sets off belong in one batch.
    setImmediate(() => {
      planned = false
      const entries = waiting.slice(0, maxItems)
      waiting = waiting.slice(maxItems)
      running++
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, patienceMs)))
      void Promise.race([settle(entries), late]).finally(() => {
        clearTimeout(timer)
        running--
        plan()
      })
      plan()
    })
  }

  async function settle(entries: Entry[]): Promise<void> {
    try {
      const results = await run(entries.map(({ item }) => item))
      if (results.length !== entries.length)
        throw new RangeError('a batch gave another number of results than it took items')
      results.forEach((result, index) => entries[index]?.resolve(result))
    } catch (error) {
      if (entries.length > 1 && isItemsFault(error)) for (const entry of entries) await settle([entry])
      else for (const { reject } of entries) reject(error)
    }
  }
}
