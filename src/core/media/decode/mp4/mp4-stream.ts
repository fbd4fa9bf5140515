import { viewOf } from '../../bytes.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import { topBoxes, writeBox, type Box } from './mp4-boxes.js'
import { listSamples, type Samples } from './mp4-samples.js'
import { readTrack, type Mp4Track } from './mp4-track.js'

/** The index of a day of audio takes about 30 MB; a much larger one is damage or an attack. */
const largestIndexBytes = 128 * 1024 * 1024

/**
 * Takes the first sound track out of an MP4, M4A, MOV or 3GP file. The decoder gets a file with that track alone: an
 * index with matching tables, then the samples in order. So it needs no random access, sees no pictures, and gets only
 * counts that were checked.
 *
 * @param pieceBytes approximate size of a piece
 * @throws StemworkError `BAD_INPUT`: `decode_failed` without an index or with tables that cannot be right, `no_audio`
 * without a sound track
 */
export async function openMp4(file: FileBytes, pieceBytes: number) {
  const index = await findIndex(file)
  const bytes = await file.read(index.body, index.end - index.body)
  const track = readTrack(bytes, { body: 0, end: bytes.length })
  const samples = await listSamples(file, track, index.end, pieceBytes)
  if (samples.sizes.length === 0)
    throw damagedFile('The MP4 file ends before its audio begins, or its index lists no audio.')
  return {
    /** Four characters, for example `mp4a`. */
    codec: track.codec,
    /** Length of the track by its header; undefined for fragmented files. */
    seconds: track.seconds,
    /** Positions of the samples in the file; the pieces after the first one hold them in this order. */
    samples,
    warnings: cutOff(samples, track),
    pieces: piecesOf(file, track, samples),
  }
}

/** Rounding, or a last sample past the end, is not worth a warning. */
const leastMissing = 0.001

function cutOff({ missing, isComplete }: Samples, { seconds }: Mp4Track): string[] {
  // The number of missing fragments is unknown.
  if (!isComplete)
    return ['The MP4 file was cut off or is damaged: the sound after its last whole fragment is missing.']
  if (missing < leastMissing) return []
  const lost = seconds === undefined ? '' : `, about ${(missing * seconds).toFixed(1)} of ${seconds.toFixed(1)} seconds`
  return [`The MP4 file was cut off: ${(missing * 100).toFixed(1)} % of its sound is missing${lost}.`]
}

async function findIndex(file: FileBytes): Promise<Box> {
  for await (const box of topBoxes(file, 0)) {
    if (box.type !== 'moov') continue
    if (box.end > file.size || box.end - box.body > largestIndexBytes) break
    return box
  }
  throw damagedFile('The MP4 file has no complete index; it was cut off, or the recording was not finished.')
}

async function* piecesOf(
  file: FileBytes,
  track: Mp4Track,
  samples: Samples,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield writeIndex(track, samples)
  yield* file.ranges(samples.runs)
}

/** All samples lie in one chunk after the index. */
function writeIndex({ kept }: Mp4Track, { sizes }: Samples): Uint8Array {
  const tables = [
    writeBox('stsc', words([0, 1, 1, sizes.length, 1])),
    writeBox('stsz', words([0, 0, sizes.length]), words(sizes)),
    writeBox('stco', words([0, 1, 0])),
  ]
  const media = writeBox('minf', writeBox('stbl', ...kept.sampleTable, ...tables))
  const track = writeBox('trak', ...kept.track, writeBox('mdia', ...kept.media, media))
  const index = writeBox('moov', ...kept.movie, kept.tags, track)
  // The last field is the offset of the chunk, which begins where the index ends.
  viewOf(index).setUint32(index.length - 4, index.length)
  return index
}

/** Big-endian words of 32 bits. */
function words(values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 4)
  const view = viewOf(bytes)
  for (const [index, value] of values.entries()) view.setUint32(index * 4, value)
  return bytes
}
