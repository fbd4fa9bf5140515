import type { Stats } from 'node:fs'
import type { BlobStat } from '../../../core/engine/ports/blob-store.js'

type Identity = Pick<Stats, 'ino' | 'size' | 'mtimeMs'>

const maxFiles = 10_000

/**
 * Caches the trailers of files by path. The store never changes a file but replaces it, so a cached file needs one
 * system call instead of four, which matters for counting all files of an application.
 */
export class KnownFiles {
  readonly #files = new Map<string, { identity: Identity; blob: BlobStat }>()

  keep(path: string, { ino, size, mtimeMs }: Identity, blob: BlobStat): void {
    this.#files.delete(path)
    for (const oldest of this.#files.keys()) {
      if (this.#files.size < maxFiles) break
      this.#files.delete(oldest)
    }
    this.#files.set(path, { identity: { ino, size, mtimeMs }, blob })
  }

  /** What the file was when it was last seen. */
  last(path: string): BlobStat | undefined {
    return this.#files.get(path)?.blob
  }

  find(path: string, { ino, size, mtimeMs }: Identity): BlobStat | undefined {
    const known = this.#files.get(path)
    if (!known) return undefined
    const { identity, blob } = known
    const isSame = identity.ino === ino && identity.size === size && identity.mtimeMs === mtimeMs
    return isSame ? { ...blob } : undefined
  }
}
