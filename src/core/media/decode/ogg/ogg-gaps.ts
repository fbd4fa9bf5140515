import type { AudioBlock, AudioStream } from '../../dsp/audio-stream.js'
import { type Encoded, openCodec } from '../codec-stream.js'
import { longestGapSeconds, silence } from '../lost-audio.js'
import { packetsOf } from './ogg-pages.js'
import type { StreamPage } from './ogg-stream.js'
import { UndecodedError } from '../undecoded.js'

/** Each part needs its own decoder. If there are more gaps, the parts are joined. */
export const mostGaps = 100

/** A longer gap before the first audio comes from a recording that joined a broadcast late. */
const longestFirstGapSeconds = 5

type Pages = AsyncGenerator<StreamPage, void, undefined>
type Codec = Pick<Encoded, 'codec' | 'load'>

/** Position of a part of the stream, in samples as its pages count them; undefined if it holds no audio. */
export interface PartPosition {
  start: number | undefined
  /** Whether the part continues the one before; otherwise it starts another stream. */
  isContinued: boolean
}

interface Part {
  isContinued: boolean
  /** The stream's headers, then the part's pages. */
  pages: Pages
}

/**
 * Finds where the parts of a damaged stream begin: at the end of a page minus the samples that the pages up to it hold.
 * The last page is left out, because its audio may be cut at the end.
 */
export async function positionsOf(pages: Pages, decoder: Codec): Promise<PartPosition[]> {
  const positions: PartPosition[] = []
  for await (const { isContinued, pages: all } of partsOf(pages)) {
    let end: number | undefined
    let skipped = 0
    const counted = (async function* () {
      let held: StreamPage | undefined
      let audioPages = 0
      for await (const page of all) {
        if (held) {
          if (held.granule) end = held.granule
          yield held.bytes
        }
        if (page.isFirst && decoder.codec === 'opus') skipped = preSkipOf(page)
        if (page.granule !== 0) audioPages++
        held = page
      }
      if (!held || audioPages > 1) return
      if (held.granule) end = held.granule
      yield held.bytes
    })()
    const samples = await countSamples(counted, decoder)
    positions.push({ start: samples > 0 && end !== undefined ? end - skipped - samples : undefined, isContinued })
  }
  return positions
}

/** Samples at the start of an Opus stream that are counted but not played (RFC 7845, 5.1). */
function preSkipOf(page: StreamPage): number {
  const [head] = packetsOf(page).packets
  return head && head.length >= 12 ? head[10]! | (head[11]! << 8) : 0
}

async function countSamples(pieces: AsyncGenerator<Uint8Array, void, undefined>, decoder: Codec): Promise<number> {
  let samples = 0
  try {
    for await (const { channels } of (await openCodec({ ...decoder, pieces, format: decoder.codec })).blocks)
      samples += channels[0]!.length
  } catch (error) {
    if (!(error instanceof UndecodedError)) throw error
  }
  return samples
}

/**
 * Decodes the parts of a damaged stream, each with its own decoder, and fills the gaps between their positions with
 * silence.
 *
 * @param silent receives the seconds of silence
 */
export async function openParts(
  pages: Pages,
  positions: readonly PartPosition[],
  decoder: Codec,
  silent: { seconds: number },
): Promise<AudioStream> {
  const warnings: string[] = []
  const blocks = decodeParts(pages, positions, decoder, warnings, silent)
  const first = await blocks.next()
  if (first.done) throw new UndecodedError('No part of the damaged Ogg file could be decoded.')
  const { stream, block } = first.value
  return {
    ...stream,
    warnings,
    blocks: (async function* () {
      yield block
      for await (const { block: next } of blocks) yield next
    })(),
  }
}

async function* decodeParts(
  pages: Pages,
  positions: readonly PartPosition[],
  decoder: Codec,
  warnings: string[],
  silent: { seconds: number },
): AsyncGenerator<{ stream: AudioStream; block: AudioBlock }, void, undefined> {
  let shape: AudioStream | undefined
  /** Samples so far, and the offset to subtract from positions. */
  let samples = 0
  let origin: number | undefined
  let index = 0
  for await (const { pages: part } of partsOf(pages)) {
    const { start, isContinued } = positions[index++] ?? {}
    if (start === undefined) continue
    const stream = await openCodec({ ...decoder, pieces: bytesOf(part), format: decoder.codec })
    shape ??= stream
    if (stream.sampleRate !== shape.sampleRate || stream.channelCount !== shape.channelCount) {
      warnings.push('A part of the damaged Ogg file with another rate or number of channels was left out.')
      continue
    }
    const gap = isContinued ? start - (origin ?? 0) - samples : 0
    const longest = origin === undefined ? longestFirstGapSeconds : longestGapSeconds
    if (gap > 0 && gap <= longest * stream.sampleRate) {
      silent.seconds += gap / stream.sampleRate
      samples += gap
      for (const block of silence(gap, stream.channelCount, {})) yield { stream, block }
    }
    origin = start - samples
    for await (const block of stream.blocks) {
      samples += block.channels[0]!.length
      yield { stream, block }
    }
    warnings.push(...(stream.warnings ?? []))
  }
}

/** Divides a stream at its gaps. Each part's pages must be read before the next part. */
async function* partsOf(pages: Pages): AsyncGenerator<Part, void, undefined> {
  let headers: StreamPage[] = []
  let next = await pages.next()
  while (!next.done) {
    const isContinued = !next.value.isFirst
    if (!isContinued) headers = []
    const before = headers
    const part = (async function* (): Pages {
      yield* before
      for (let isStart = true; !next.done; isStart = false) {
        const page = next.value
        if (!isStart && (page.isAfterGap || page.isFirst)) return
        if (page.granule === 0) headers.push(page)
        yield page
        next = await pages.next()
      }
    })()
    yield { isContinued, pages: part }
    for await (const _ of part);
  }
}

export async function* bytesOf(pages: Pages): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { bytes } of pages) yield bytes
}
