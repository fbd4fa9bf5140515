import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import { childBoxes, topBoxes, type Box } from './mp4-boxes.js'
import type { Mp4Track } from './mp4-track.js'

/** A run of bytes in the file that holds whole samples. */
export interface SampleRun {
  position: number
  length: number
}

/** Samples in the order in which they are played. */
export interface Samples {
  runs: SampleRun[]
  /** Size of each sample. */
  sizes: number[]
  /** Fraction of the listed bytes that lie past the end of the file, because it was cut off. */
  missing: number
  /** Whether the fragments end where the file does. */
  isComplete: boolean
}

/** A day of AAC has 4 million. */
const mostSamples = 8_000_000
/** In bytes; the largest real samples, of lossless codecs, take less than 1 MiB. */
const largestSample = 4 * 1024 * 1024
const largestFragmentHeader = 16 * 1024 * 1024

/** Uncompressed audio has one sample in each frame of a few bytes, so its samples are joined. */
const uncompressed = /^(sowt|twos|in24|in32|fl32|fl64|raw |NONE|ulaw|alaw|lpcm|ipcm|fpcm)$/

/** Adds `count` samples of `bytes` each, one after another from `position`. Returns the position after them. */
type Add = (position: number, bytes: number, count?: number) => number

/** Collects samples and refuses values that no real file has. */
function sampleCollector(fileSize: number, runBytes: number, joins: boolean) {
  const [runs, sizes]: [SampleRun[], number[]] = [[], []]
  let [totalBytes, listedBytes] = [0, 0]
  const addOne = (position: number, bytes: number) => {
    totalBytes += bytes
    if (sizes.length >= mostSamples || totalBytes > 2 * fileSize)
      throw damagedFile('The index of the MP4 file lists more samples than the file can hold.')
    sizes.push(bytes)
    const last = runs.at(-1)
    if (last && last.position + last.length === position && last.length + bytes <= runBytes) last.length += bytes
    else runs.push({ position, length: bytes })
  }
  const add: Add = (position, bytes, count = 1) => {
    const end = position + bytes * count
    if (bytes > largestSample && !joins)
      throw damagedFile(`A sample of the MP4 file claims ${bytes} bytes, which no real one has.`)
    listedBytes += bytes * count
    const there = Math.min(end, fileSize)
    if (joins) for (let at = position; at < there; at += runBytes) addOne(at, Math.min(runBytes, there - at))
    // Samples past the end were cut off with the file.
    else if (bytes > 0) for (let at = position; at < end && at + bytes <= fileSize; at += bytes) addOne(at, bytes)
    return end
  }
  return { runs, sizes, add, missing: () => (listedBytes > 0 ? 1 - totalBytes / listedBytes : 0) }
}

/**
 * Lists the samples of a track, from the index and from the fragments that follow it.
 *
 * @param indexEnd position of the first fragment
 * @param runBytes most bytes of a run, unless one sample is larger
 * @throws StemworkError `BAD_INPUT` `decode_failed` for tables that cannot be right
 */
export async function listSamples(
  file: FileBytes,
  track: Mp4Track,
  indexEnd: number,
  runBytes: number,
): Promise<Samples> {
  const { runs, sizes, add, missing } = sampleCollector(file.size, runBytes, uncompressed.test(track.codec))
  let isComplete = true
  addTables(add, track)
  if (track.isFragmented) {
    for await (const box of topBoxes(file, indexEnd)) {
      isComplete = box.end === file.size
      if (box.type !== 'moof') continue
      if (box.end - box.body > largestFragmentHeader)
        throw damagedFile('The header of a fragment of the MP4 file is far too long.')
      const bytes = await file.read(box.body, box.end - box.body)
      if (bytes.length < box.end - box.body) break
      // Offsets in a fragment count from its first byte.
      addFragment(add, track, bytes, box.start)
    }
  }
  return { runs, sizes, missing: missing(), isComplete }
}

function addTables(add: Add, { tables }: Mp4Track): void {
  const { sampleCount, fixedBytes, sizes, samplesPerChunk, chunkOffsets } = tables
  if (!chunkOffsets) return
  let sample = 0
  let row = -1
  let inChunk = 1
  for (let chunk = 0; chunk < chunkOffsets.count && sample < sampleCount; chunk++) {
    const firstOf = (index: number) => samplesPerChunk?.view.getUint32(index * 12) ?? 0
    while (samplesPerChunk && row + 1 < samplesPerChunk.count && firstOf(row + 1) <= chunk + 1) {
      row++
      inChunk = samplesPerChunk.view.getUint32(row * 12 + 4)
    }
    const { view, entryBytes } = chunkOffsets
    let position = entryBytes === 4 ? view.getUint32(chunk * 4) : Number(view.getBigUint64(chunk * 8))
    const count = Math.min(inChunk, sampleCount - sample)
    if (!sizes) add(position, fixedBytes, count)
    else for (let i = 0; i < count; i++) position = add(position, sizes.view.getUint32((sample + i) * 4))
    sample += count
  }
}

/** The samples of a fragment (ISO/IEC 14496-12, 8.8.7 and 8.8.8). */
function addFragment(add: Add, track: Mp4Track, bytes: Uint8Array, fragmentStart: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (const traf of childBoxes(bytes, 0, bytes.length)) {
    if (traf.type !== 'traf') continue
    let run: FragmentRun | undefined
    for (const box of childBoxes(bytes, traf.body, traf.end)) {
      if (box.type === 'tfhd') run = readFragmentHeader(view, box, track, fragmentStart)
      if (box.type === 'trun' && run) addRun(add, view, box, run)
    }
  }
}

interface FragmentRun {
  base: number
  sampleBytes: number
  /** Position of the next run, unless that run states its own. */
  position: number
}

function readFragmentHeader(
  view: DataView,
  { body, end }: Box,
  track: Mp4Track,
  fragmentStart: number,
): FragmentRun | undefined {
  if (end - body < 8 || view.getUint32(body + 4) !== track.id) return undefined
  const flags = view.getUint32(body) & 0xff_ffff
  const hasBase = (flags & 1) !== 0
  const sizeAt = body + 8 + (hasBase ? 8 : 0) + (flags & 2 ? 4 : 0) + (flags & 8 ? 4 : 0)
  const hasSize = (flags & 0x10) !== 0
  if ((hasSize ? sizeAt + 4 : sizeAt) > end)
    throw damagedFile('A fragment of the MP4 file has a header that is cut off.')
  const base = hasBase ? Number(view.getBigUint64(body + 8)) : fragmentStart
  return { base, position: base, sampleBytes: hasSize ? view.getUint32(sizeAt) : track.fragmentSampleBytes }
}

function addRun(add: Add, view: DataView, { body, end }: Box, run: FragmentRun): void {
  if (end - body < 8) throw damagedFile('The table "trun" of the MP4 file is cut off.')
  const flags = view.getUint32(body) & 0xff_ffff
  const count = view.getUint32(body + 4)
  let at = body + 8
  if (flags & 1) {
    if (at + 4 > end) throw damagedFile('The table "trun" of the MP4 file is cut off.')
    run.position = run.base + view.getInt32(at)
    at += 4
  }
  if (flags & 4) at += 4
  const fields = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length
  if (at + count * fields * 4 > end)
    throw damagedFile(`The table "trun" of the MP4 file claims ${count} entries, which is more than it has room for.`)
  if (!(flags & 0x200)) {
    run.position = add(run.position, run.sampleBytes, count)
    return
  }
  const sizeOffset = flags & 0x100 ? 4 : 0
  for (let i = 0; i < count; i++, at += fields * 4) run.position = add(run.position, view.getUint32(at + sizeOffset))
}
