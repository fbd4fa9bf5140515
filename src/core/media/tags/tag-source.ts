import type { FileHandle } from 'node:fs/promises'
import { readInto } from '../decode/local-file.js'

/** Longer tags are not read. A cover that is too large to keep fits, so that the texts beside it are read. */
export const maxTagBytes = 32 * 1024 * 1024
/** Most boxes, chunks and blocks of a file that are read. */
const maxHeaders = 1000

export type TagSource = ReturnType<typeof tagSource>

/** Reads the parts of a file that may hold tags: limited in size and in number. */
export function tagSource(file: FileHandle, bytes: number) {
  let headers = 0
  /** The bytes from `position` on: fewer at the end of the file. */
  const read = (position: number, length: number) =>
    readInto(file, Buffer.alloc(Math.max(0, Math.min(length, maxTagBytes, bytes - position))), position)
  /** A tag of that length; `undefined` if it is too long or incomplete. */
  const tag = async (position: number, length: number) => {
    if (length > maxTagBytes) return undefined
    const found = await read(position, length)
    return found.length === length ? found : undefined
  }
  return {
    bytes,
    read,
    tag,
    /** The header of a box, chunk or block; `undefined` at the end of the file and after too many of them. */
    header: async (position: number, length: number) =>
      headers++ < maxHeaders ? await tag(position, length) : undefined,
  }
}
