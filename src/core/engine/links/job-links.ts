import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { StemworkError } from '../errors.js'
import type { DocumentStore, StoredDocument } from '../ports/document-store.js'
import type { StoreClock } from '../store-clock.js'

const kind = 'job-link'
const mostLinks = 50

const linkSchema = z.object({
  id: z.string(),
  /** Epoch milliseconds, as is `expiresAt`. */
  createdAt: z.number(),
  expiresAt: z.number(),
  opens: z.number(),
})
/** A link that shows one job to people without a key until it expires or is revoked. */
export type JobLink = z.infer<typeof linkSchema>

/** The links to jobs, stored as documents that expire with the link. */
export class JobLinks {
  readonly #documents: DocumentStore
  readonly #clock: Pick<StoreClock, 'time'>

  /** @internal */
  constructor(documents: DocumentStore, clock: Pick<StoreClock, 'time'>) {
    this.#documents = documents
    this.#clock = clock
  }

  /** @throws StemworkError `CONFLICT` if the job already has 50 links. */
  async create(jobId: string, { expiresInMs }: { expiresInMs: number }): Promise<JobLink> {
    if ((await this.#find(jobId)).length >= mostLinks) throw tooMany()
    const createdAt = await this.#clock.time()
    const link = { id: randomUUID(), createdAt, expiresAt: createdAt + expiresInMs, opens: 0 }
    await this.#documents.put({ kind, key: keyOf(jobId, link.id), value: link, ttlMs: expiresInMs })
    // Other links may have been made at the same time: a link beyond the limit would be in no list to revoke it from.
    if ((await this.#find(jobId)).length > mostLinks) {
      await this.revoke(jobId, link.id)
      throw tooMany()
    }
    return link
  }

  /** Links that still open the job, newest first. */
  async list(jobId: string): Promise<JobLink[]> {
    const found = await this.#find(jobId)
    // A record that cannot be read does not hide the others.
    const links = found.flatMap(({ value }) => linkSchema.safeParse(value).data ?? [])
    return links.sort((a, b) => b.createdAt - a.createdAt)
  }

  async #find(jobId: string): Promise<StoredDocument[]> {
    const found = await this.#documents.list(kind, { limit: mostLinks + 1, after: keyOf(jobId, '') })
    return found.filter(({ key }) => key.startsWith(keyOf(jobId, '')))
  }

  /** Whether the link exists and has neither expired nor been revoked. */
  async isOpen(jobId: string, id: string): Promise<boolean> {
    return (await this.#documents.get(kind, keyOf(jobId, id))) !== undefined
  }

  /** Counts one more person who opened the link. */
  async countOpen(jobId: string, id: string): Promise<void> {
    const key = keyOf(jobId, id)
    for (;;) {
      const known = await this.#documents.get(kind, key)
      if (!known) return
      const link = linkSchema.parse(known.value)
      const value = { ...link, opens: link.opens + 1 }
      const ttlMs = Math.max(1, link.expiresAt - (await this.#clock.time()))
      if (await this.#documents.put({ kind, key, value, ttlMs }, { version: known.version })) return
    }
  }

  /** Revokes a link at once. */
  async revoke(jobId: string, id: string): Promise<void> {
    await this.#documents.delete(kind, keyOf(jobId, id))
  }

  /** Revokes the links of a deleted job, which could last for another year. @internal */
  async revokeAll(jobId: string): Promise<void> {
    for (const { key } of await this.#find(jobId)) await this.#documents.delete(kind, key)
  }
}

function keyOf(jobId: string, id: string): string {
  return `${jobId}/${id}`
}

function tooMany(): StemworkError {
  return new StemworkError('CONFLICT', `A job may have ${mostLinks} links. Revoke one that is no longer used.`)
}
