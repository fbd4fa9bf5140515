import { type FileHandle, open, statfs } from 'node:fs/promises'
import { z } from 'zod'
import { stemEntries, stemNames, type Stems } from '../../../models/stems.js'
import type { FinishedAudio, OverlapAddState } from '../pipeline/overlap-add.js'

/** Planes that follow each other in a part, as 32-bit floats (little-endian, as all platforms of the networks are). */
export const planesSchema = z.object({
  pass: z.number().int().nonnegative(),
  /** Track sample of the first value. */
  start: z.number().int().nonnegative(),
  sampleCount: z.number().int().nonnegative(),
  stems: z.array(z.enum(stemNames)),
  channels: z.number().int().nonnegative(),
  /** In bytes. */
  offset: z.number().int().nonnegative(),
})
export type KeptPlanes = z.infer<typeof planesSchema>

const indexSchema = z.object({
  format: z.literal(1),
  /** Identifies input, models, options and version: parts of other work cannot be used. */
  fingerprint: z.string(),
  segments: z.array(planesSchema.extend({ segment: z.number().int().nonnegative() })),
  /** The overlap-add after the last segment of each pass: a plane of weights, then the sums. */
  states: z.array(planesSchema),
})
export type PartIndex = z.infer<typeof indexSchema>

const lengthBytes = 4

export type PartWriter = Awaited<ReturnType<typeof openPart>>

/**
 * Writes a part, which may grow for a long time before its index is known: JSON at the end of the file, its length in
 * the last four bytes.
 */
export async function openPart(path: string) {
  const file = await open(path, 'w', 0o600)
  let bytes = 0
  const write = async (content: Uint8Array) => {
    for (let done = 0; done < content.length;)
      done += (await file.write(content, done, content.length - done, bytes + done)).bytesWritten
    bytes += content.length
  }
  return {
    path,

    /** Returns the offset of the first plane. */
    async append(planes: readonly (Float32Array | Uint8Array)[]): Promise<number> {
      const offset = bytes
      for (const plane of planes) await write(new Uint8Array(plane.buffer, plane.byteOffset, plane.byteLength))
      return offset
    },

    async finish(index: object): Promise<void> {
      const json = Buffer.from(JSON.stringify(index))
      const length = Buffer.alloc(lengthBytes)
      length.writeUInt32LE(json.length)
      await write(Buffer.concat([json, length]))
      await file.close()
    },

    abandon: () => file.close(),
  }
}

/** @throws errors of the file system; an error for a file that is not a part of this kind */
export async function readIndex(path: string, bytes: number): Promise<PartIndex> {
  return indexSchema.parse(await readJson(path, bytes))
}

/** Reads the index that `finish` wrote. @throws errors of the file system; an error for a file that is not a part */
export async function readJson(path: string, bytes: number): Promise<unknown> {
  return await withFile(path, 'r', async (file) => {
    const length = Buffer.from(await readBytes(file, bytes - lengthBytes, lengthBytes)).readUInt32LE()
    const json = await readBytes(file, bytes - lengthBytes - length, length)
    return JSON.parse(Buffer.from(json).toString())
  })
}

/** Opens a file for as long as the work takes. */
export async function withFile<Result>(path: string, flags: 'r' | 'w', work: (file: FileHandle) => Promise<Result>) {
  const file = await open(path, flags)
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

/** Disk space to leave free for the results. */
const spareBytes = 256 * 1024 ** 2

/** @throws an error if the disk is nearly full */
export async function checkSpace(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  if (bavail * bsize < spareBytes) throw new Error('the disk is nearly full')
}

/** Appends the planes in `before`, which belong to no stem, then those of all stems one after the other. */
export async function appendPlanes(
  writer: PartWriter,
  { stems, ...facts }: FinishedAudio & { pass: number },
  before: readonly Float32Array[] = [],
): Promise<KeptPlanes> {
  const entries = stemEntries(stems)
  const offset = await writer.append([...before, ...entries.flatMap(([, planes]) => planes)])
  return { ...facts, stems: entries.map(([stem]) => stem), channels: entries[0]?.[1].length ?? 0, offset }
}

export async function appendState(
  writer: PartWriter,
  pass: number,
  { start, weights, sums }: OverlapAddState,
): Promise<KeptPlanes> {
  return await appendPlanes(writer, { pass, start, sampleCount: weights.length, stems: sums }, [weights])
}

export async function readState(file: FileHandle, planes: KeptPlanes): Promise<OverlapAddState> {
  const { first, stems } = await readPlanes(file, planes, 1)
  const [weights = new Float32Array(0)] = first
  return { start: planes.start, weights, sums: stems }
}

/** Planes by stem, in the order in which they were appended, after `before` planes that belong to no stem. */
export async function readPlanes(
  file: FileHandle,
  { sampleCount, stems, channels, offset }: KeptPlanes,
  before = 0,
): Promise<{ first: Float32Array[]; stems: Stems }> {
  const count = before + stems.length * channels
  const bytes = await readBytes(file, offset, count * sampleCount * Float32Array.BYTES_PER_ELEMENT)
  const planes = Array.from({ length: count }, (_, index) =>
    new Float32Array(bytes.buffer).subarray(index * sampleCount, (index + 1) * sampleCount),
  )
  const named = stems.map((stem, index) => {
    const first = before + index * channels
    return [stem, planes.slice(first, first + channels)] as const
  })
  return { first: planes.slice(0, before), stems: Object.fromEntries(named) }
}

/** Returns `length` bytes from `position` on. @throws if there are fewer */
export async function readBytes(file: FileHandle, position: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length)
  await readInto(bytes, file, position)
  return bytes
}

/** Fills `bytes` with the bytes from `position` on. @throws if there are fewer */
export async function readInto(bytes: Uint8Array, file: FileHandle, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done)
    if (bytesRead === 0) throw new Error('a part of a checkpoint is shorter than its index says')
    done += bytesRead
  }
}
