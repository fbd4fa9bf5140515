import { uploadsPrefix } from '../../core/engine/job/blob-keys.js'
import { rested, type Turn } from '../../core/engine/limits/rested.js'
import { Shares } from '../../core/engine/limits/shares.js'
import type { HttpEngine } from '../http-engine.js'
import { Problem, rateLimited } from './problem.js'

export interface StorageLimits {
  /** Bytes of uploads and results that an application may keep; false: no limit. */
  storedBytes: number | false
  /** Most simultaneous uploads of an application. */
  uploadsInFlight: number
}

/** The stores in which applications keep data. */
type CountedStores = Pick<HttpEngine, 'blobs' | 'resultBytes' | 'recordBytes' | 'documentBytes'>

/** An upload in progress. */
export interface UploadSlot {
  /** Counts bytes that have arrived. @throws Problem `STORAGE_FULL`. */
  received(bytes: number): void
  /** @param stored whether its file is in the store now. */
  end(stored: boolean): void
}

/** Storage of one application, as this process knows it. */
interface Account {
  /** Uploads in progress, by blob key: the bytes that were announced or have arrived, whichever is more. */
  uploads: Map<string, number>
  /** Bytes in the store at the last check. */
  stored: number
  /** Bytes of documents in `stored`, and the monotonic milliseconds until which they are not read again. */
  documents: { bytes: number; until: number }
  /** Bytes of uploads that have ended since that check began. */
  added: number
  look: Promise<void> | undefined
  /** Monotonic milliseconds until which the last check is valid. */
  freshUntil: number
  /** Like `freshUntil`, if the check found plenty of room; for `roughForMs` more, nobody waits for the next check. */
  roughUntil: number
}

/**
 * Checking many files is slow, so an application's check may take at most a twentieth of the time, and applications
 * take turns.
 */
const lookShare = 20
const minFreshMs = 1000
/** Files that are checked in one turn of an application. */
const filesInTurn = 20
/** Below half of the limit, no exact figure is needed. */
const roughShare = 0.5
const roughForMs = 10_000
/** How long the bytes of documents stay valid: clients add little to documents. */
const documentsForMs = 10 * 60_000
const maxIdleAccounts = 1000
/** Bytes that the smallest file takes. */
const diskBlockBytes = 4096

/**
 * The storage that applications use, with the uploads in progress in this process. Usage is measured, not kept as a
 * running total: uploads in the blob store, results and records in the job store, so that no crash makes it wrong.
 * Uploads of one process together cannot exceed the limit; each further process may add its own uploads in progress.
 */
export class StorageUse {
  readonly #engine: CountedStores
  readonly #limits: StorageLimits
  readonly #accounts = new Map<string, Account>()
  readonly #looks = new Shares({ total: 1 })

  constructor(engine: CountedStores, limits: StorageLimits) {
    this.#engine = engine
    this.#limits = limits
  }

  /** @throws Problem `STORAGE_FULL` if the application has reached its limit. */
  async refuseFull(app: string): Promise<void> {
    const { storedBytes } = this.#limits
    if (storedBytes === false) return
    const account = this.#account(app)
    await this.#lookIfDue(app, account)
    if (account.stored + account.added >= storedBytes) throw storageFull(storedBytes)
  }

  /**
   * Begins an upload, which the caller must end.
   *
   * @param announced bytes that the request announces.
   * @throws Problem `RATE_LIMITED` if an upload to the same key is in progress, or too many of the application are,
   * `STORAGE_FULL` if it would not fit.
   */
  async begin(app: string, key: string, announced: number): Promise<UploadSlot> {
    const account = this.#account(app)
    const { uploads } = account
    if (uploads.has(key)) throw beingWritten()
    if (uploads.size >= this.#limits.uploadsInFlight) throw tooManyUploads(this.#limits.uploadsInFlight)
    uploads.set(key, announced)
    let arrived = 0
    const slot: UploadSlot = {
      received: (bytes) => {
        arrived += bytes
        if (arrived <= announced) return
        uploads.set(key, arrived)
        this.#refuseExcess(account)
      },
      end: (stored) => {
        uploads.delete(key)
        if (stored) account.added += arrived
      },
    }
    try {
      await this.#lookIfDue(app, account)
      this.#refuseExcess(account)
      return slot
    } catch (error) {
      slot.end(false)
      throw error
    }
  }

  /** The application's account; the least recently used idle account makes room. */
  #account(app: string): Account {
    const account = this.#accounts.get(app) ?? {
      uploads: new Map<string, number>(),
      stored: 0,
      documents: { bytes: 0, until: -Infinity },
      added: 0,
      look: undefined,
      freshUntil: -Infinity,
      roughUntil: -Infinity,
    }
    this.#accounts.delete(app)
    this.#accounts.set(app, account)
    for (const [oldest, { uploads, look }] of this.#accounts) {
      if (this.#accounts.size <= maxIdleAccounts) break
      if (uploads.size === 0 && !look && oldest !== app) this.#accounts.delete(oldest)
    }
    return account
  }

  async #lookIfDue(app: string, account: Account): Promise<void> {
    const { storedBytes } = this.#limits
    if (storedBytes === false) return
    const now = performance.now()
    const isRough = account.stored + account.added < roughShare * storedBytes
    if (now < (isRough ? account.roughUntil : account.freshUntil)) return
    const look = (account.look ??= this.#look(app, account).finally(() => (account.look = undefined)))
    if (isRough && now < account.roughUntil + roughForMs) {
      // If this check fails, a later caller checks again and gets the error.
      look.catch(() => {})
      return
    }
    await look
  }

  async #look(app: string, account: Account): Promise<void> {
    const startedAt = performance.now()
    const addedBefore = account.added
    account.stored = await this.#storedBytes(app, account)
    // Uploads that ended during the check may or may not be included; they stay counted, to be safe.
    account.added -= addedBefore
    const endedAt = performance.now()
    account.freshUntil = endedAt + Math.max(minFreshMs, lookShare * (endedAt - startedAt))
    account.roughUntil = account.freshUntil + roughForMs
  }

  #refuseExcess({ uploads, stored, added }: Account): void {
    const { storedBytes } = this.#limits
    if (storedBytes === false) return
    let total = stored + added
    for (const bytes of uploads.values()) total += bytes
    if (total > storedBytes) throw storageFull(storedBytes)
  }

  async #storedBytes(app: string, account: Account): Promise<number> {
    // All are awaited together: an unhandled rejection of one during another would end the process.
    const [uploads, results, records] = await Promise.all([
      this.#uploadBytes(app),
      this.#engine.resultBytes(app),
      this.#engine.recordBytes(app),
      this.#readDocuments(app, account),
    ])
    return uploads + results + records + account.documents.bytes
  }

  async #readDocuments(app: string, account: Account): Promise<void> {
    if (performance.now() < account.documents.until) return
    const turn: Turn = (work) => this.#looks.use(app, () => rested(work))
    const bytes = await this.#engine.documentBytes(app, { turn })
    account.documents = { bytes, until: performance.now() + documentsForMs }
  }

  async #uploadBytes(app: string): Promise<number> {
    let [bytes, files] = [0, 0]
    let turn = await this.#looks.take(app)
    try {
      for await (const entry of this.#engine.blobs.list(`${uploadsPrefix}${app}/`)) {
        bytes += isMarker(entry.key) ? diskBlockBytes : entry.bytes
        if (++files % filesInTurn > 0) continue
        turn?.release()
        turn = await this.#looks.take(app)
      }
    } finally {
      turn?.release()
    }
    return bytes
  }
}

/** Whether a key is the marker of a used or refused ticket: a few bytes, but a client can create many. */
function isMarker(key: string): boolean {
  return /\.[a-z]+$/.test(key)
}

function storageFull(maxBytes: number): Problem {
  return new Problem(
    'STORAGE_FULL',
    `The uploads, results and records of this application fill its ${maxBytes} bytes of storage, or would do so with ` +
      'this file. Delete jobs that are no longer needed, or wait until their results expire.',
    { reason: 'storage_full', headers: { 'retry-after': '600' } },
  )
}

function beingWritten(): Problem {
  // Not a conflict, which would mean that a file is stored: the other may be a broken request of the same client.
  return rateLimited(
    'Another request is uploading with this link, and a link accepts one at a time. Wait for its response, or get ' +
      'a new ticket from GET /upload.',
    10,
  )
}

function tooManyUploads(limit: number): Problem {
  return rateLimited(
    `An application may send at most ${limit} uploads at a time. Wait for some to end, then send this one again.`,
    10,
  )
}
