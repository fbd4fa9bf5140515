import type { FileHandle } from 'node:fs/promises'
import { StemworkError } from '../../../core/engine/errors.js'

/**
 * Facts about a blob at the end of its file, after the bytes: JSON, the JSON's length in four bytes, and a mark. Being
 * part of the file, they appear with the one rename that publishes the bytes, and a truncated file is recognized.
 * Players of audio files ignore them.
 */
export interface Trailer {
  contentType: string
  etag: string
}

const mark = Buffer.from('stemblob')
const lengthBytes = 4
const tailBytes = lengthBytes + mark.byteLength
/** Content types are limited accordingly, so one read of this many bytes always holds the whole trailer. */
const maxTrailerBytes = 1024

export function encodeTrailer(trailer: Trailer): Buffer {
  const json = Buffer.from(JSON.stringify([trailer.contentType, trailer.etag]))
  if (json.byteLength + tailBytes > maxTrailerBytes)
    throw new StemworkError('INVALID_PARAMS', 'The content type is too long. Expected at most 900 bytes.')
  const length = Buffer.alloc(lengthBytes)
  length.writeUInt32LE(json.byteLength)
  return Buffer.concat([json, length, mark])
}

/**
 * Reads the trailer of an open file of `fileBytes` bytes, with the number of bytes before it; `undefined` if the file
 * has none.
 */
export async function readTrailer(
  file: FileHandle,
  fileBytes: number,
): Promise<(Trailer & { bytes: number }) | undefined> {
  const length = Math.min(fileBytes, maxTrailerBytes)
  const { buffer: end, bytesRead } = await file.read(Buffer.alloc(length), 0, length, fileBytes - length)
  if (bytesRead < tailBytes || !end.subarray(-mark.byteLength).equals(mark)) return undefined
  const jsonBytes = end.readUInt32LE(length - tailBytes)
  if (jsonBytes > length - tailBytes) return undefined
  const [contentType, etag] = JSON.parse(end.toString('utf8', length - tailBytes - jsonBytes, length - tailBytes)) as [
    string,
    string,
  ]
  return { contentType, etag, bytes: fileBytes - tailBytes - jsonBytes }
}
