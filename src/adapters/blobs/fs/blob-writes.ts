import { randomUUID } from 'node:crypto'
import type { Stats } from 'node:fs'
import { type FileHandle, link, lstat, open, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../../../core/engine/errors.js'
import type { BlobStat, BlobStore, PutOptions } from '../../../core/engine/ports/blob-store.js'
import { putCopy } from '../../../core/engine/ports/put-copy.js'
import { abortable } from '../shared/abortable-source.js'
import { blobChunks } from '../shared/blob-chunks.js'
import { alreadyExists } from '../shared/write-refusals.js'
import type { BlobFolder } from './blob-folder.js'
import { changesOf, type DiskTurn } from './disk-turns.js'
import { append, publish, sync } from './durable-file.js'
import { makeFolder, removeEmptyFolders, temporaryName } from './folders.js'
import { failureOf, isAbsent, storageError } from './storage-error.js'
import { encodeTrailer } from './trailer.js'

/** Bytes of a write; smaller blobs are written at once. */
const blockBytes = 64 * 1024

/** @param writing collects the temporary files that puts of this process are writing */
export function blobWrites(
  folder: BlobFolder,
  writing: Set<string>,
): Pick<BlobStore, 'put'> & Required<Pick<BlobStore, 'putFile'>> {
  const put: BlobStore['put'] = async (key, source, options = {}) => {
    const { ifAbsent = false, signal, app } = options
    const path = folder.pathOf(key)
    const change = changesOf(key, app)
    const facts = newFacts(options)
    const trailer = encodeTrailer(facts)
    signal?.throwIfAborted()
    // Under load, each call waits in a queue, so calls that do not depend on each other are made at the same time.
    const looking = ifAbsent ? folder.look(key) : undefined
    looking?.catch(() => {})
    const temporary = temporaryOf(path)
    const file = await inFolder(dirname(path), change, () => change(() => open(temporary, 'wx', 0o600)))
    return await whileWriting(temporary, change, async () => {
      let bytes = -trailer.byteLength
      try {
        if (await looking) throw alreadyExists(key)
        for await (const block of inBlocks(abortable(blobChunks(source), signal), trailer)) {
          await append(file, block, change)
          bytes += block.byteLength
        }
        await sync(file, change)
        signal?.throwIfAborted()
      } catch (error) {
        await file.close().catch(() => {})
        throw error
      }
      // Some network file systems report a failed write only when the file is closed.
      const closing = closed(file).catch((error: unknown) => {
        throw storageError('write a blob', error)
      })
      closing.catch(() => {})
      await publish(temporary, path, { key, ifAbsent, change })
      return folder.keep(path, await closing, { key, bytes, ...facts })
    })
  }

  return {
    put,

    async putFile(key, source, options = {}) {
      const { signal, app } = options
      const path = folder.pathOf(key)
      const change = changesOf(key, app)
      const facts = newFacts(options)
      const trailer = encodeTrailer(facts)
      signal?.throwIfAborted()
      const temporary = temporaryOf(path)
      const stats = await lstat(source)
      // Moving a symbolic link would move the link itself; and a file's other names would get the trailer, too.
      const isMovable = stats.isFile() && stats.nlink === 1
      const isLinked = isMovable && (await inFolder(dirname(path), change, () => linkFile(source, temporary, change)))
      const stored = isLinked
        ? await whileWriting(temporary, change, async () => {
            const { bytes, stats: published } = await publishWithTrailer(temporary, trailer, path, {
              change,
              publish: async () => {
                signal?.throwIfAborted()
                await publish(temporary, path, { key, ifAbsent: false, change })
              },
            }).catch((error: unknown) => {
              throw failureOf('write a blob', error)
            })
            return folder.keep(path, published, { key, bytes, ...facts })
          })
        : await putCopy({ put }, key, source, options)
      await rm(source, { force: true })
      return stored
    },
  }

  /** Removes the temporary file if the write fails. */
  async function whileWriting(temporary: string, change: DiskTurn, write: () => Promise<BlobStat>): Promise<BlobStat> {
    writing.add(temporary)
    try {
      return await write()
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {})
      await removeEmptyFolders(dirname(temporary), folder.root, change)
      throw error
    } finally {
      writing.delete(temporary)
    }
  }
}

/** A small blob is one write, its trailer included. The source may reuse the memory of a chunk. */
async function* inBlocks(
  source: AsyncIterable<Uint8Array>,
  trailer: Uint8Array,
): AsyncGenerator<Uint8Array, void, undefined> {
  let parts: Uint8Array[] = []
  let bytes = 0
  /** Chunks of at least this size are not copied. At first it is larger: the first block may be the only one. */
  let uncopied = blockBytes
  for await (const chunk of source) {
    const isWhole = bytes === 0 && chunk.byteLength >= uncopied
    if (!isWhole) {
      parts.push(Buffer.from(chunk))
      bytes += chunk.byteLength
      if (bytes < blockBytes) continue
    }
    yield isWhole ? chunk : Buffer.concat(parts)
    parts = []
    bytes = 0
    uncopied = blockBytes / 4
  }
  yield Buffer.concat([...parts, trailer])
}

/** Closes a file and returns its stats. */
async function closed(file: FileHandle): Promise<Stats> {
  try {
    return await file.stat()
  } finally {
    await file.close()
  }
}

function newFacts({ contentType = 'application/octet-stream' }: PutOptions): { contentType: string; etag: string } {
  return { contentType, etag: randomUUID() }
}

function temporaryOf(path: string): string {
  return join(dirname(path), temporaryName())
}

async function inFolder<Result>(folder: string, change: DiskTurn, begin: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      // The folder nearly always exists.
      if (attempt > 1) await makeFolder(folder, change)
      return await begin()
    } catch (error) {
      // A simultaneous delete may remove the new folder while it is still empty.
      if (!isAbsent(error) || attempt === 10) throw storageError('begin a blob', error)
    }
  }
}

/** Errors of another disk, or of a file system without hard links or with a limit on them. */
const cannotLink = ['EXDEV', 'EPERM', 'EACCES', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

/** Gives a file a second name. Returns false if it cannot have one there and must be copied. */
export async function linkFile(path: string, second: string, change: DiskTurn): Promise<boolean> {
  try {
    await change(() => link(path, second))
    return true
  } catch (error) {
    if (cannotLink.includes(codeOf(error))) return false
    throw error
  }
}

/**
 * Writes the trailer after the file's bytes, makes both durable and publishes the file.
 *
 * @param published path at which `publish` puts the file. If that fails, nothing is there, and the file is unchanged
 * under its other names.
 * @returns the bytes before the trailer, and the stats of the published file
 */
export async function publishWithTrailer(
  path: string,
  trailer: Buffer,
  published: string,
  { change, publish }: { change: DiskTurn; publish: () => Promise<void> },
): Promise<{ bytes: number; stats: Stats }> {
  const file = await open(path, 'r+')
  try {
    const { size, ino } = await file.stat()
    try {
      // As for files that the store writes itself: for the owner only.
      await file.chmod(0o600)
      await append(file, trailer, change, size)
      await sync(file, change)
      await publish()
      return { bytes: size, stats: await file.stat() }
    } catch (error) {
      // Published, but perhaps not durably.
      const found = await stat(published).catch(() => undefined)
      if (found?.ino === ino) await rm(published, { force: true })
      await file.truncate(size)
      throw error
    }
  } finally {
    await file.close()
  }
}
