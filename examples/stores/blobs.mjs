// blobs.mjs: a blob store: a file for each blob, and its key in a journal. For one process.
import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { abortable, blobChunks, checkBlobKey, checkBlobPrefix, SortedList, StemworkError } from 'stemwork/adapter'
import { openJournal } from './journal.mjs'

/** @typedef {import('stemwork/adapter').BlobStat} BlobStat */

/** @param {string} folder */
export async function folderBlobs(folder) {
  await mkdir(folder, { recursive: true })
  const journal = await openJournal(join(folder, 'journal'))
  const blobs = /** @type {ReadonlyMap<string, BlobStat>} */ (journal.values)
  const keys = new SortedList(byCodeUnits)
  for (const key of blobs.keys()) keys.add(key)
  /** @type {Set<{ key: string, revoked: boolean }>} */
  const unfinished = new Set()
  // The etag is the file's name: a file never changes, and a put makes a new one.
  const fileOf = (/** @type {string} */ etag) => join(folder, `${etag}.blob`)
  const known = new Set([...blobs.values()].map(({ etag }) => fileOf(etag)))
  const names = (await readdir(folder)).filter((name) => name.endsWith('.blob'))
  for (const name of names) if (!known.has(join(folder, name))) await rm(join(folder, name))

  const keysUnder = (/** @type {string} */ prefix) => {
    const found = []
    for (const key of keys.ascending((each) => each >= prefix)) {
      if (!key.startsWith(prefix)) break
      found.push(key)
    }
    return found
  }

  // A file that cannot be removed while it is read is removed the next time the folder is opened.
  const removeFile = (/** @type {string} */ etag) => rm(fileOf(etag), { force: true }).catch(() => {})
  const remove = (/** @type {() => string[]} */ select) =>
    journal.exclusively(async () => {
      const found = select().flatMap((key) => blobs.get(key) ?? [])
      if (found.length > 0) await journal.write(found.map(({ key }) => [key, undefined]))
      for (const { key } of found) keys.remove(key)
      await Promise.all(found.map(({ etag }) => removeFile(etag)))
      return found.length
    })

  /** @satisfies {import('stemwork/adapter').BlobStore} */
  const store = {
    traits: { scope: /** @type {const} */ ('process') },

    async put(key, source, { contentType = 'application/octet-stream', ifAbsent = false, signal } = {}) {
      checkBlobKey(key)
      const write = { key, revoked: false }
      const stat = { key, bytes: 0, contentType, etag: randomUUID(), modifiedAt: 0 }
      unfinished.add(write)
      try {
        // With this mark, each chunk is written before the next is requested: its memory may then be used again.
        const file = createWriteStream(fileOf(stat.etag), { flags: 'wx', flush: true, highWaterMark: 1 })
        await pipeline(abortable(blobChunks(source), signal), file)
        return await journal.exclusively(async () => {
          signal?.throwIfAborted()
          if (write.revoked) throw unavailable(`The folder of ${key} was deleted while the blob was being written.`)
          const old = blobs.get(key)
          if (ifAbsent && old) throw new StemworkError('ALREADY_EXISTS', `There is a blob ${key}; it was not changed.`)
          Object.assign(stat, { bytes: file.bytesWritten, modifiedAt: Date.now() })
          await journal.write([[key, stat]])
          if (old) await removeFile(old.etag)
          else keys.add(key)
          return { ...stat }
        })
      } catch (error) {
        await removeFile(stat.etag)
        throw error
      } finally {
        unfinished.delete(write)
      }
    },

    async get(key, { range, signal } = {}) {
      const stat = blobs.get(checkBlobKey(key))
      return stat && { stat: { ...stat }, body: abortable(contentOf(fileOf(stat.etag), range), signal) }
    },

    async stat(key) {
      const stat = blobs.get(checkBlobKey(key))
      return stat && { ...stat }
    },

    async delete(key) {
      checkBlobKey(key)
      await remove(() => [key])
    },

    async deletePrefix(prefix) {
      checkBlobPrefix(prefix)
      for (const write of unfinished) if (write.key.startsWith(prefix)) write.revoked = true
      return await remove(() => keysUnder(prefix))
    },

    async *list(prefix) {
      for (const key of keysUnder(checkBlobPrefix(prefix))) {
        const stat = blobs.get(key)
        if (stat) yield { ...stat }
      }
    },
  }
  return { blobs: store, close: () => journal.close() }
}

/** Opens the file only when it is read, so that a body that is never read leaves nothing open. */
async function* contentOf(/** @type {string} */ path, { start = 0, end = Infinity } = {}) {
  yield* createReadStream(path, { start, end })
}

const byCodeUnits = (/** @type {string} */ a, /** @type {string} */ b) => (a < b ? -1 : a > b ? 1 : 0)

const unavailable = (/** @type {string} */ what) =>
  new StemworkError('STORE_UNAVAILABLE', `${what} Write it again.`, { retryable: true })
