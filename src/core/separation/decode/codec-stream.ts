import { badInput, StemworkError } from '../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'
import { quietly } from './quiet-console.js'
import { damagedFile } from './damaged-file.js'

/** Encoded bytes in the order that a decoder needs. */
export type EncodedPieces = AsyncGenerator<Uint8Array, void, undefined>

interface Decoded {
  channelData: readonly Float32Array[]
  sampleRate: number
}

interface Decoder {
  (bytes?: Uint8Array): Promise<Decoded>
  free(): void
}

/** Decoded peaks are within about 1.5. Damaged frames give values of 40 and more, which would corrupt a whole segment. */
const largestSample = 8
/** A damaged frame may claim another sample rate. If more audio than this differs, the stream has really changed its rate. */
const straySecondsAllowed = 1

/**
 * Decodes with the codec of that name from `audio-decode`, which is loaded on first use (the AAC decoder is GPL code and is
 * loaded for AAC files only). The first audio is decoded before this returns. An error after the first audio ends the stream,
 * as for a truncated file, because the codecs report a cut-off end in the same way.
 *
 * @throws StemworkError `BAD_INPUT` `decode_failed` when there is no audio.
 */
export async function openCodec(codec: string, pieces: EncodedPieces, format: string): Promise<AudioStream> {
  const blocks = decodeAll(codec, pieces, format)
  const first = await blocks.next()
  if (first.done) throw undecodable(format)
  const { sampleRate, channels } = first.value
  return {
    sampleRate,
    channelCount: channels.length,
    sampleCount: undefined,
    format,
    blocks: sameShape(first.value, blocks),
  }
}

type RatedBlock = AudioBlock & { sampleRate: number }

async function* decodeAll(
  codec: string,
  pieces: EncodedPieces,
  format: string,
): AsyncGenerator<RatedBlock, void, undefined> {
  const decoder = await createDecoder(codec)
  let hasAudio = false
  try {
    for (;;) {
      const piece = await pieces.next()
      let decoded: Decoded
      try {
        decoded = await quietly(() => decoder(piece.done ? undefined : piece.value))
      } catch (error) {
        if (!hasAudio) throw undecodable(format, error)
        return
      }
      if (isAudio(decoded)) {
        hasAudio = true
        yield { sampleRate: decoded.sampleRate, channels: cleanPlanes(decoded.channelData, collapsesMono.has(codec)) }
      }
      if (piece.done) return
    }
  } finally {
    decoder.free()
  }
}

/** These codecs return one channel while both are identical, so mono and stereo look the same: both become stereo. */
const collapsesMono = new Set(['mp3', 'aac', 'mp4', 'wma', 'mkv', 'avi'])

function isAudio({ channelData, sampleRate }: Decoded): boolean {
  return sampleRate > 0 && channelData.length > 0 && channelData[0].length > 0
}

function cleanPlanes(planes: readonly Float32Array[], isStereo: boolean): Float32Array[] {
  for (const plane of planes) {
    for (let i = 0; i < plane.length; i++) {
      // Written so that NaN also fails the comparison.
      if (!(Math.abs(plane[i]) <= largestSample)) plane[i] = 0
    }
  }
  return isStereo && planes.length === 1 ? [planes[0], planes[0].slice()] : [...planes]
}

async function* sameShape(
  first: RatedBlock,
  rest: AsyncIterable<RatedBlock>,
): AsyncGenerator<AudioBlock, void, undefined> {
  yield { channels: first.channels }
  let straySamples = 0
  for await (const { channels, sampleRate } of rest) {
    if (sampleRate === first.sampleRate && channels.length === first.channels.length) {
      yield { channels }
      continue
    }
    straySamples += channels[0].length
    if (straySamples > straySecondsAllowed * sampleRate) {
      const change = `from ${describe(first)} to ${describe({ channels, sampleRate })}`
      throw badInput(
        'decode_failed',
        `The file changes ${change} part-way, which is not supported. Split it into one file for each part.`,
      )
    }
  }
}

function describe({ channels, sampleRate }: RatedBlock): string {
  return `${channels.length} channels at ${sampleRate} Hz`
}

async function createDecoder(codec: string): Promise<Decoder> {
  return quietly(async () => {
    const { default: codecs } = await import('audio-decode')
    const create = (codecs as unknown as Record<string, (() => Promise<Decoder>) | undefined>)[codec]
    if (!create)
      throw new StemworkError('INTERNAL_ERROR', `The installed audio-decode has no decoder named "${codec}".`)
    return create()
  })
}

export function undecodable(format: string, cause?: unknown): StemworkError {
  const message = `The file looks like ${format}, but no audio could be decoded from it; it is damaged or was cut off.`
  return damagedFile(message, cause)
}
