import { crc32 } from 'node:zlib'

/** A file of an archive. Its length is known before its bytes are read. */
export interface ZipEntry {
  /** With `/` between folders. */
  name: string
  bytes: number
  modifiedAt: Date
  /** Opened when its turn comes. */
  open(): Promise<AsyncIterable<Uint8Array>>
}

/** Audio does not compress, so each file is a row of Deflate blocks of the type "stored": readable as a stream by every program. */
const blockBytes = 0xffff
const blockHeadBytes = 5
const limit32 = 0xffff_ffff
const limit16 = 0xffff
const localHeadBytes = 30
const centralHeadBytes = 46
const endBytes = 22
const longEndBytes = 56 + 20
const longSizesBytes = 4 + 16
const longFactsBytes = 4 + 24

/** Sizes and times in UTF-8 names with a data descriptor behind the data (flags 3 and 11). */
const flags = 0x0808
const deflate = 8
/** Some programs take names of other systems for a DOS code page, whatever the flag says. */
const madeOnUnix = 3 << 8
/** Mode 0644. */
const regularFile = (0o100644 << 16) >>> 0
const usualVersion = 20
const longVersion = 45

interface Placed {
  entry: ZipEntry
  name: Buffer
  packedBytes: number
  offset: number
  /** Whether its sizes need the fields of ZIP64. */
  isLong: boolean
}

/** Length of the archive in bytes, known before it is written. */
export function zipBytes(entries: readonly ZipEntry[]): number {
  const { placed, directoryOffset } = place(entries)
  const directory = placed.reduce((sum, file) => sum + centralBytes(file), 0)
  return directoryOffset + directory + (needsLongEnd(placed, directoryOffset, directory) ? longEndBytes : 0) + endBytes
}

/**
 * Writes an archive while its files are read, one after the other; nothing is held but one block.
 *
 * @throws Error if a file has another length than announced: an archive that ended early would look whole.
 */
export async function* zipStream(entries: readonly ZipEntry[]): AsyncGenerator<Uint8Array, void, undefined> {
  const { placed, directoryOffset } = place(entries)
  const sums: number[] = []
  for (const file of placed) {
    yield localHead(file)
    let sum = 0
    for await (const block of fullBlocks(await file.entry.open(), file.entry)) {
      sum = crc32(block.data, sum)
      yield blockHead(block.data.byteLength, block.isLast)
      yield block.data
    }
    sums.push(sum)
    yield descriptor(file, sum)
  }
  const directory = Buffer.concat(placed.map((file, index) => centralHead(file, sums[index] ?? 0)))
  yield directory
  if (needsLongEnd(placed, directoryOffset, directory.byteLength))
    yield longEnd(placed.length, directoryOffset, directory.byteLength)
  yield end(placed.length, directoryOffset, directory.byteLength)
}

function place(entries: readonly ZipEntry[]): { placed: Placed[]; directoryOffset: number } {
  const placed: Placed[] = []
  let offset = 0
  for (const entry of entries) {
    const packedBytes = entry.bytes + blockHeadBytes * Math.max(1, Math.ceil(entry.bytes / blockBytes))
    const file = { entry, name: Buffer.from(entry.name), packedBytes, offset, isLong: packedBytes >= limit32 }
    placed.push(file)
    const extraBytes = file.isLong ? longSizesBytes : 0
    offset += localHeadBytes + file.name.byteLength + extraBytes + packedBytes + descriptorBytes(file)
  }
  return { placed, directoryOffset: offset }
}

/** The file in pieces of the block size; only the last is shorter. */
async function* fullBlocks(
  body: AsyncIterable<Uint8Array>,
  { name, bytes }: ZipEntry,
): AsyncGenerator<{ data: Uint8Array; isLast: boolean }, void, undefined> {
  let block = Buffer.allocUnsafe(blockBytes)
  let filled = 0
  let done = 0
  for await (const chunk of body) {
    for (let from = 0; from < chunk.byteLength;) {
      const taken = Math.min(blockBytes - filled, chunk.byteLength - from)
      block.set(chunk.subarray(from, from + taken), filled)
      filled += taken
      from += taken
      if (filled < blockBytes || done + filled === bytes) continue
      yield { data: block, isLast: false }
      done += filled
      filled = 0
      block = Buffer.allocUnsafe(blockBytes)
    }
  }
  if (done + filled !== bytes) throw new Error(`"${name}" has ${done + filled} bytes, not the ${bytes} announced.`)
  yield { data: block.subarray(0, filled), isLast: true }
}

function blockHead(length: number, isLast: boolean): Buffer {
  const head = Buffer.alloc(blockHeadBytes)
  head.writeUInt8(isLast ? 1 : 0, 0)
  head.writeUInt16LE(length, 1)
  head.writeUInt16LE(length ^ limit16, 3)
  return head
}

function localHead({ entry, name, isLong }: Placed): Buffer {
  const head = Buffer.alloc(localHeadBytes)
  head.writeUInt32LE(0x0403_4b50, 0)
  head.writeUInt16LE(isLong ? longVersion : usualVersion, 4)
  head.writeUInt16LE(flags, 6)
  head.writeUInt16LE(deflate, 8)
  head.writeUInt32LE(dosTime(entry.modifiedAt), 10)
  // Sum and sizes follow in the descriptor.
  head.writeUInt16LE(name.byteLength, 26)
  if (!isLong) return Buffer.concat([head, name])
  head.writeUInt32LE(limit32, 18)
  head.writeUInt32LE(limit32, 22)
  head.writeUInt16LE(longSizesBytes, 28)
  const extra = Buffer.alloc(longSizesBytes)
  extra.writeUInt16LE(1, 0)
  extra.writeUInt16LE(longSizesBytes - 4, 2)
  return Buffer.concat([head, name, extra])
}

function descriptorBytes({ isLong }: Placed): number {
  return isLong ? 24 : 16
}

function descriptor(file: Placed, sum: number): Buffer {
  const bytes = Buffer.alloc(descriptorBytes(file))
  bytes.writeUInt32LE(0x0807_4b50, 0)
  bytes.writeUInt32LE(sum, 4)
  if (file.isLong) {
    bytes.writeBigUInt64LE(BigInt(file.packedBytes), 8)
    bytes.writeBigUInt64LE(BigInt(file.entry.bytes), 16)
  } else {
    bytes.writeUInt32LE(file.packedBytes, 8)
    bytes.writeUInt32LE(file.entry.bytes, 12)
  }
  return bytes
}

function hasLongFacts({ isLong, offset }: Placed): boolean {
  return isLong || offset >= limit32
}

function centralBytes(file: Placed): number {
  return centralHeadBytes + file.name.byteLength + (hasLongFacts(file) ? longFactsBytes : 0)
}

function centralHead(file: Placed, sum: number): Buffer {
  const { entry, name, packedBytes, offset } = file
  const isLong = hasLongFacts(file)
  const head = Buffer.alloc(centralHeadBytes)
  head.writeUInt32LE(0x0201_4b50, 0)
  head.writeUInt16LE(madeOnUnix | (isLong ? longVersion : usualVersion), 4)
  head.writeUInt16LE(isLong ? longVersion : usualVersion, 6)
  head.writeUInt16LE(flags, 8)
  head.writeUInt16LE(deflate, 10)
  head.writeUInt32LE(dosTime(entry.modifiedAt), 12)
  head.writeUInt32LE(sum, 16)
  head.writeUInt32LE(isLong ? limit32 : packedBytes, 20)
  head.writeUInt32LE(isLong ? limit32 : entry.bytes, 24)
  head.writeUInt16LE(name.byteLength, 28)
  head.writeUInt16LE(isLong ? longFactsBytes : 0, 30)
  head.writeUInt32LE(regularFile, 38)
  head.writeUInt32LE(isLong ? limit32 : offset, 42)
  if (!isLong) return Buffer.concat([head, name])
  const extra = Buffer.alloc(longFactsBytes)
  extra.writeUInt16LE(1, 0)
  extra.writeUInt16LE(longFactsBytes - 4, 2)
  extra.writeBigUInt64LE(BigInt(entry.bytes), 4)
  extra.writeBigUInt64LE(BigInt(packedBytes), 12)
  extra.writeBigUInt64LE(BigInt(offset), 20)
  return Buffer.concat([head, name, extra])
}

function needsLongEnd(placed: readonly Placed[], offset: number, bytes: number): boolean {
  return placed.length >= limit16 || offset >= limit32 || bytes >= limit32 || placed.some(hasLongFacts)
}

function longEnd(count: number, offset: number, bytes: number): Buffer {
  const record = Buffer.alloc(longEndBytes)
  record.writeUInt32LE(0x0606_4b50, 0)
  record.writeBigUInt64LE(44n, 4)
  record.writeUInt16LE(longVersion, 12)
  record.writeUInt16LE(longVersion, 14)
  record.writeBigUInt64LE(BigInt(count), 24)
  record.writeBigUInt64LE(BigInt(count), 32)
  record.writeBigUInt64LE(BigInt(bytes), 40)
  record.writeBigUInt64LE(BigInt(offset), 48)
  record.writeUInt32LE(0x0706_4b50, 56)
  record.writeBigUInt64LE(BigInt(offset + bytes), 64)
  record.writeUInt32LE(1, 72)
  return record
}

function end(count: number, offset: number, bytes: number): Buffer {
  const record = Buffer.alloc(endBytes)
  record.writeUInt32LE(0x0605_4b50, 0)
  record.writeUInt16LE(Math.min(count, limit16), 8)
  record.writeUInt16LE(Math.min(count, limit16), 10)
  record.writeUInt32LE(Math.min(bytes, limit32), 12)
  record.writeUInt32LE(Math.min(offset, limit32), 16)
  return record
}

/** Date and time as MS-DOS keeps them, in steps of two seconds; in UTC, so that the same files make the same archive. */
function dosTime(when: Date): number {
  const date = (Math.max(0, when.getUTCFullYear() - 1980) << 9) | ((when.getUTCMonth() + 1) << 5) | when.getUTCDate()
  const time = (when.getUTCHours() << 11) | (when.getUTCMinutes() << 5) | (when.getUTCSeconds() >> 1)
  return ((date << 16) | time) >>> 0
}
