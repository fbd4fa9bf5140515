import { z } from 'zod'
import { coalesced } from '../../shared/coalesced.js'
import { type Backend, parsed } from './backend.js'

const directoryKey = 'stemwork/jobs'
/** About 20 kB: what a new job writes besides its record does not grow with the number of jobs. */
const idsPerPage = 500

interface Page {
  number: number
  ids: Set<string>
  write(): Promise<void>
}

/**
 * The ids of all jobs, kept in pages of the backend and whole in memory: Keyv itself cannot list its keys. An id may be
 * here without a record (a crash between the two writes), never the other way round.
 */
export class IdPages {
  readonly #backend: Backend
  readonly #pages = new Map<number, Page>()
  readonly #pageOf = new Map<string, Page>()
  readonly #writeDirectory: () => Promise<void>
  #opening: Promise<void> | undefined
  #open: Page | undefined
  #isStale = false

  private constructor(backend: Backend) {
    this.#backend = backend
    this.#writeDirectory = coalesced(() => backend.write(directoryKey, JSON.stringify([...this.#pages.keys()])))
  }

  static async load(backend: Backend): Promise<IdPages> {
    const pages = new IdPages(backend)
    const numbers = parsed(z.array(z.number().int()), directoryKey, await backend.read(directoryKey)) ?? []
    const texts = await backend.readMany(numbers.map(pageKey))
    for (const [index, number] of numbers.entries()) {
      const page = pages.#newPage(number)
      for (const id of parsed(z.array(z.string()), pageKey(number), texts[index]) ?? []) pages.#enter(id, page)
      if (page.ids.size < idsPerPage) pages.#open = page
    }
    return pages
  }

  ids(): string[] {
    return [...this.#pageOf.keys()]
  }

  /** Once it returns, a restart finds the id. */
  async add(id: string): Promise<void> {
    if (this.#isStale) await this.#writeAll()
    const known = this.#pageOf.get(id)
    if (known) return known.write()
    while (!this.#open || this.#open.ids.size >= idsPerPage)
      await (this.#opening ??= this.#openPage().finally(() => (this.#opening = undefined)))
    const page = this.#open
    this.#enter(id, page)
    await page.write()
  }

  async remove(id: string): Promise<void> {
    const page = this.#pageOf.get(id)
    if (!page) return
    this.#pageOf.delete(id)
    page.ids.delete(id)
    if (page.ids.size > 0 || page === this.#open) return page.write()
    this.#pages.delete(page.number)
    await this.#writeDirectory()
    await this.#backend.remove(pageKey(page.number))
  }

  /** The backend lost something; the pages may be gone too and are written again before the next id. */
  markStale(): void {
    this.#isStale = true
  }

  async #writeAll(): Promise<void> {
    await Promise.all([this.#writeDirectory(), ...[...this.#pages.values()].map((page) => page.write())])
    this.#isStale = false
  }

  /** The directory names a page before the page is used, so no page is ever forgotten. */
  async #openPage(): Promise<void> {
    const page = this.#newPage(Math.max(-1, ...this.#pages.keys()) + 1)
    await this.#writeDirectory()
    this.#open = page
  }

  #newPage(number: number): Page {
    const ids = new Set<string>()
    const page = {
      number,
      ids,
      write: coalesced(() => this.#backend.write(pageKey(number), JSON.stringify([...ids]))),
    }
    this.#pages.set(number, page)
    return page
  }

  #enter(id: string, page: Page): void {
    page.ids.add(id)
    this.#pageOf.set(id, page)
  }
}

function pageKey(number: number): string {
  return `${directoryKey}/${number}`
}
