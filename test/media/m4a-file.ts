import type { FileHandle } from 'node:fs/promises'

/** The access units of an ADTS file. */
export function adtsFrames(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = []
  for (let at = 0; at + 7 <= bytes.length;) {
    const length = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5)
    frames.push(bytes.subarray(at + 7, at + length))
    at += length
  }
  return frames
}

/**
 * Writes an M4A file of `times` repetitions of AAC-LC frames (stereo, 44.1 kHz), with its index at the end, like
 * recorders.
 */
export async function writeM4a(file: FileHandle, frames: Uint8Array[], times: number): Promise<void> {
  const run = Buffer.concat(frames)
  const start = box('ftyp', Buffer.from('M4A \0\0\0\0M4A mp42', 'latin1'))
  const mediaBytes = run.length * times
  await file.write(start)
  await file.write(Buffer.concat([u32(mediaBytes + 8), Buffer.from('mdat')]))
  for (let time = 0; time < times; time++) await file.write(run)
  await file.write(index(frames, times, start.length + 8, run.length))
}

function index(frames: Uint8Array[], times: number, mediaStart: number, runBytes: number): Buffer {
  const count = frames.length * times
  const duration = count * 1024
  const sizes = Buffer.alloc(count * 4)
  for (let frame = 0; frame < count; frame++) sizes.writeUInt32BE(frames[frame % frames.length]!.length, frame * 4)
  const chunks = Buffer.alloc(times * 4)
  for (let time = 0; time < times; time++) chunks.writeUInt32BE(mediaStart + time * runBytes, time * 4)
  const configuration = Buffer.from([0x12, 0x10])
  const decoder = Buffer.concat([
    Buffer.from([4, 17, 0x40, 0x15, 0, 0, 0]),
    u32(128_000, 128_000),
    Buffer.from([5, 2]),
    configuration,
  ])
  const esds = full('esds', Buffer.from([3, 3 + decoder.length + 3, 0, 0, 0]), decoder, Buffer.from([6, 1, 2]))
  const entry = box(
    'mp4a',
    Buffer.from('000000000000000100000000000000000002001000000000', 'hex'),
    u32(44_100 * 65_536),
    esds,
  )
  const table = box(
    'stbl',
    full('stsd', u32(1), entry),
    full('stts', u32(1, count, 1024)),
    full('stsc', u32(1, 1, frames.length, 1)),
    full('stsz', u32(0, count), sizes),
    full('stco', u32(times), chunks),
  )
  const media = box(
    'mdia',
    full('mdhd', u32(0, 0, 44_100, duration, 0)),
    full('hdlr', u32(0), Buffer.from('soun'), Buffer.alloc(13)),
    box('minf', full('smhd', u32(0)), table),
  )
  return box(
    'moov',
    full('mvhd', u32(0, 0, 44_100, duration), Buffer.alloc(80)),
    box('trak', full('tkhd', u32(0, 0, 1, 0, duration), Buffer.alloc(60)), media),
  )
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, position) => bytes.writeUInt32BE(value >>> 0, position * 4))
  return bytes
}

function box(type: string, ...bodies: Buffer[]): Buffer {
  const body = Buffer.concat(bodies)
  return Buffer.concat([u32(body.length + 8), Buffer.from(type), body])
}

function full(type: string, ...bodies: Buffer[]): Buffer {
  return box(type, u32(0), ...bodies)
}
