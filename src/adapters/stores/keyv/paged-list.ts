import { z } from 'zod'
import { coalesced } from '../../shared/coalesced.js'
import { type Backend, parsed } from './backend.js'

interface PagedListOptions<Item> {
  /** Entry of the backend with the numbers of the pages. */
  directoryKey: string
  schema: z.ZodType<Item>
  keyOf(item: Item): string
  perPage: number
}

interface Page<Item> {
  number: number
  items: Map<string, Item>
  write(): Promise<void>
}

export type PagedList<Item> = Awaited<ReturnType<typeof pagedList<Item>>>

/** A list in pages of the backend, held whole in memory: Keyv itself cannot list its keys. */
export async function pagedList<Item>(backend: Backend, options: PagedListOptions<Item>) {
  const { directoryKey, schema, keyOf, perPage } = options
  const pages = new Map<number, Page<Item>>()
  const pageOf = new Map<string, Page<Item>>()
  let open: Page<Item> | undefined
  let opening: Promise<void> | undefined
  let isStale = false

  const newPage = (number: number) => emptyPage<Item>(number, (text) => backend.write(pageKey(number), text))
  const pageKey = (number: number) => `${directoryKey}/${number}`
  const writeDirectory = coalesced(() => backend.write(directoryKey, JSON.stringify([...pages.keys()])))

  const enter = (page: Page<Item>, items: readonly Item[]) => {
    pages.set(page.number, page)
    for (const item of items) {
      page.items.set(keyOf(item), item)
      pageOf.set(keyOf(item), page)
    }
    return page
  }

  /** The directory names a page before the page is used, so no page is ever forgotten. */
  const openPage = async () => {
    const page = enter(newPage(Math.max(-1, ...pages.keys()) + 1), [])
    await writeDirectory()
    open = page
  }

  const numbers = parsed(z.array(z.number().int()), directoryKey, await backend.read(directoryKey)) ?? []
  const texts = await backend.readMany(numbers.map(pageKey))
  for (const [index, number] of numbers.entries()) {
    const page = enter(newPage(number), parsed(z.array(schema), pageKey(number), texts[index]) ?? [])
    if (page.items.size < perPage) open = page
  }

  return {
    items: () => [...pages.values()].flatMap(({ items }) => [...items.values()]),

    /** Once this returns, a restart finds the item. */
    async add(item: Item): Promise<void> {
      if (isStale) await Promise.all([writeDirectory(), ...[...pages.values()].map((page) => page.write())])
      isStale = false
      const known = pageOf.get(keyOf(item))
      if (known) return known.write()
      while (!open || open.items.size >= perPage) await (opening ??= openPage().finally(() => (opening = undefined)))
      await enter(open, [item]).write()
    },

    async remove(keys: readonly string[]): Promise<void> {
      const changed = new Set(keys.flatMap((key) => pageOf.get(key) ?? []))
      for (const key of keys) {
        pageOf.get(key)?.items.delete(key)
        pageOf.delete(key)
      }
      for (const page of changed) {
        if (page.items.size > 0 || page === open) await page.write()
        else {
          pages.delete(page.number)
          await writeDirectory()
          await backend.remove(pageKey(page.number))
        }
      }
    },

    /** Call if the backend lost an entry: pages may be lost, too, and are written again before the next item. */
    markStale: () => void (isStale = true),
  }
}

function emptyPage<Item>(number: number, write: (text: string) => Promise<void>): Page<Item> {
  const items = new Map<string, Item>()
  return { number, items, write: coalesced(() => write(JSON.stringify([...items.values()]))) }
}
