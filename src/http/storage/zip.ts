import { crc32 } from 'node:zlib'

// Built here: client-zip takes five times the CPU time, does not notice a file that ends early, and stores files so
// that a reader must know the archive's end (Java's ZipInputStream and funzip fail).

/** A file of an archive. Its length is known before its bytes are read. */
export interface ZipEntry {
  /** With `/` between folders. */
  name: string
  bytes: number
  modifiedAt: Date
  /** Opened when the files before it are written. */
  open(): Promise<AsyncIterable<Uint8Array>>
}

/** Audio does not compress, so each file is a series of "stored" Deflate blocks: every program can stream it. */
const blockBytes = 0xffff
const blockHeadBytes = 5
const limit32 = 0xffff_ffff
const limit16 = 0xffff

/** Sizes and times in UTF-8 names with a data descriptor behind the data (flags 3 and 11). */
const flags = 0x0808
const deflate = 8
/** Some programs read names of other systems in a DOS code page, whatever the flag says. */
const madeOnUnix = 3 << 8
/** Mode 0644. */
const regularFile = (0o100644 << 16) >>> 0
const usualVersion = 20
const longVersion = 45

interface ArchivedFile {
  entry: ZipEntry
  name: Buffer
  packedBytes: number
  offset: number
  /** Whether its sizes need the fields of ZIP64. */
  isLong: boolean
}

/** Length of the archive in bytes, known before it is written. */
export function zipBytes(entries: readonly ZipEntry[]): number {
  const { files, directoryOffset } = layOut(entries)
  return directoryOffset + tail(files, directoryOffset, []).byteLength
}

/**
 * Writes an archive while its files are read, one after the other, without holding or copying them.
 *
 * @throws Error if a file has another length than announced: an archive that ended early would look whole.
 */
export async function* zipStream(entries: readonly ZipEntry[]): AsyncGenerator<Uint8Array, void, undefined> {
  const { files, directoryOffset } = layOut(entries)
  const sums: number[] = []
  for (const file of files) {
    yield localHead(file)
    const { name, bytes, open } = file.entry
    let sum = 0
    let done = 0
    if (bytes === 0) yield blockHead(0, 0)
    for await (const chunk of await open()) {
      sum = crc32(chunk, sum)
      if (done + chunk.byteLength > bytes) throw new Error(`"${name}" has more than the ${bytes} bytes announced.`)
      for (let from = 0; from < chunk.byteLength;) {
        const before = done % blockBytes
        if (before === 0) yield blockHead(done, bytes)
        const piece = chunk.subarray(from, from + blockBytes - before)
        yield piece
        from += piece.byteLength
        done += piece.byteLength
      }
    }
    if (done < bytes) throw new Error(`"${name}" has ${done} bytes, not the ${bytes} announced.`)
    sums.push(sum)
    yield descriptor(file, sum)
  }
  yield tail(files, directoryOffset, sums)
}

/** Head of the block that begins at `start`. */
function blockHead(start: number, bytes: number): Uint8Array {
  const length = Math.min(blockBytes, bytes - start)
  return Uint8Array.of(start + length === bytes ? 1 : 0, length, length >> 8, ~length, ~length >> 8)
}

function layOut(entries: readonly ZipEntry[]): { files: ArchivedFile[]; directoryOffset: number } {
  const files: ArchivedFile[] = []
  let offset = 0
  for (const entry of entries) {
    const packedBytes = entry.bytes + blockHeadBytes * Math.max(1, Math.ceil(entry.bytes / blockBytes))
    const file = { entry, name: Buffer.from(entry.name), packedBytes, offset, isLong: packedBytes >= limit32 }
    files.push(file)
    offset += localHead(file).byteLength + packedBytes + descriptor(file, 0).byteLength
  }
  return { files, directoryOffset: offset }
}

function localHead({ entry, name, isLong }: ArchivedFile): Buffer {
  // Sum and sizes follow in the descriptor.
  const size = isLong ? limit32 : 0
  const extra = isLong ? Buffer.concat([u16(1, 16), u64(0, 0)]) : Buffer.alloc(0)
  return Buffer.concat([
    u32(0x0403_4b50),
    u16(isLong ? longVersion : usualVersion, flags, deflate),
    u32(dosTime(entry.modifiedAt), 0, size, size),
    u16(name.byteLength, extra.byteLength),
    name,
    extra,
  ])
}

function descriptor({ isLong, packedBytes, entry }: ArchivedFile, sum: number): Buffer {
  return Buffer.concat([u32(0x0807_4b50, sum), (isLong ? u64 : u32)(packedBytes, entry.bytes)])
}

/** The central directory and the records at the end. */
function tail(files: readonly ArchivedFile[], offset: number, sums: readonly number[]): Buffer {
  const directory = Buffer.concat(files.map((file, index) => centralHead(file, sums[index] ?? 0)))
  const { byteLength } = directory
  const count = Math.min(files.length, limit16)
  const needsLongEnd = files.length >= limit16 || offset >= limit32 || byteLength >= limit32 || files.some(hasLongFacts)
  return Buffer.concat([
    directory,
    ...(needsLongEnd ? [longEnd(files.length, offset, byteLength)] : []),
    u32(0x0605_4b50),
    u16(0, 0, count, count),
    u32(Math.min(byteLength, limit32), Math.min(offset, limit32)),
    u16(0),
  ])
}

function hasLongFacts({ isLong, offset }: ArchivedFile): boolean {
  return isLong || offset >= limit32
}

function centralHead(file: ArchivedFile, sum: number): Buffer {
  const { entry, name, packedBytes, offset } = file
  const isLong = hasLongFacts(file)
  const version = isLong ? longVersion : usualVersion
  const extra = isLong ? Buffer.concat([u16(1, 24), u64(entry.bytes, packedBytes, offset)]) : Buffer.alloc(0)
  return Buffer.concat([
    u32(0x0201_4b50),
    u16(madeOnUnix | version, version, flags, deflate),
    u32(dosTime(entry.modifiedAt), sum, ...(isLong ? [limit32, limit32] : [packedBytes, entry.bytes])),
    u16(name.byteLength, extra.byteLength, 0, 0, 0),
    u32(regularFile, isLong ? limit32 : offset),
    name,
    extra,
  ])
}

function longEnd(count: number, offset: number, bytes: number): Buffer {
  return Buffer.concat([
    u32(0x0606_4b50),
    u64(44),
    u16(longVersion, longVersion),
    u32(0, 0),
    u64(count, count, bytes, offset),
    u32(0x0706_4b50, 0),
    u64(offset + bytes),
    u32(1),
  ])
}

/**
 * Date and time as MS-DOS keeps them, in steps of two seconds; in UTC, so that the same files make the same archive.
 */
function dosTime(when: Date): number {
  const date = (Math.max(0, when.getUTCFullYear() - 1980) << 9) | ((when.getUTCMonth() + 1) << 5) | when.getUTCDate()
  const time = (when.getUTCHours() << 11) | (when.getUTCMinutes() << 5) | (when.getUTCSeconds() >> 1)
  return ((date << 16) | time) >>> 0
}

function u16(...values: number[]): Buffer {
  return littleEndian(2, values)
}

function u32(...values: number[]): Buffer {
  return littleEndian(4, values)
}

function u64(...values: number[]): Buffer {
  return u32(...values.flatMap((value) => [value % 2 ** 32, Math.floor(value / 2 ** 32)]))
}

function littleEndian(size: number, values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(size * values.length)
  values.forEach((value, index) => bytes.writeUIntLE(value, index * size, size))
  return bytes
}
