import { latin1 } from '../../bytes.js'
import type { AudioStream } from '../../dsp/audio-stream.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import { type FlacMetadata, type FlacStreamInfo, readStreamInfo } from './flac-frame.js'
import { decodeFrames, type FlacLosses } from './flac-stream.js'
import { headerCount } from '../header-count.js'
import { speakersOfMask } from '../pcm/wav-header.js'

const readBytes = 64 * 1024
const commentsType = 4

/**
 * Opens native FLAC of up to 32 bits, decoded exactly: integers are divided by 2^(bits-1). Every frame is checked by
 * its CRC-16; damaged frames are replaced by silence of the same length, so that the rest stays in time. Where the
 * file's header and the frames differ, the frames are right. (The streaming decoder of `audio-decode` 3
 * silently drops about one frame of 4,096 samples in three thousand, and scales by 2^(bits-1) - 1.)
 *
 * @param start position of the `fLaC` marker
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header or when no frame can be decoded
 */
export async function openFlac(file: FileBytes, start: number): Promise<AudioStream> {
  const { info, sampleCount, firstByte, mask } = await readMetadata(file, start)
  const stream = await openFlacPieces(
    file.pieces({ from: firstByte, pieceBytes: readBytes }),
    info,
    sampleCount,
    'flac',
  )
  return mask === undefined ? stream : { ...stream, speakers: speakersOfMask(mask, stream.channelCount) }
}

/**
 * Opens FLAC frames from any container.
 *
 * @param statedSamples samples per channel by the header; 0 if it states none
 */
export async function openFlacPieces(
  pieces: AsyncGenerator<Uint8Array, void, undefined>,
  info: FlacStreamInfo,
  statedSamples: number,
  format: string,
): Promise<AudioStream> {
  const losses: FlacLosses = { frames: 0, samples: 0 }
  const frames = decodeFrames(pieces, info, losses)
  const first = await frames.next()
  if (first.done)
    throw damagedFile('The file looks like FLAC, but no frame of it is intact; it is damaged or was cut off.')
  const { sampleRate, channelCount } = first.value.header
  const warnings: string[] = []
  return {
    sampleRate,
    channelCount,
    sampleCount: statedSamples || undefined,
    statedSeconds: statedSamples > 0 ? statedSamples / sampleRate : undefined,
    format,
    warnings,
    blocks: (async function* () {
      yield { channels: first.value.channels }
      for await (const { channels } of frames) yield { channels }
      const text = lossText(losses, sampleRate)
      if (text) warnings.push(text)
    })(),
  }
}

function lossText({ frames, samples }: FlacLosses, sampleRate: number): string | undefined {
  if (frames === 0 && samples === 0) return undefined
  const seconds = (samples / sampleRate).toFixed(2)
  return (
    `The FLAC file is damaged: ${frames} of its parts could not be decoded, and ${seconds} seconds are silent ` +
    'instead.'
  )
}

async function readMetadata(
  file: FileBytes,
  start: number,
): Promise<FlacMetadata & { firstByte: number; mask?: number }> {
  const head = await file.read(start, 8 + 34)
  if (head.length < 42 || (head[4]! & 0x7f) !== 0) throw damagedFile("The FLAC file's header is missing or cut off.")
  const metadata = readStreamInfo(head.subarray(8))
  const count = headerCount('metadata blocks')
  let position = start + 4
  let mask: number | undefined
  for (let isLast = false; !isLast;) {
    count()
    const block = await file.read(position, 4)
    if (block.length < 4) throw damagedFile('The FLAC file ends before its audio begins; it was cut off.')
    isLast = (block[0]! & 0x80) !== 0
    const length = (block[1]! << 16) | (block[2]! << 8) | block[3]!
    if ((block[0]! & 0x7f) === commentsType)
      mask ??= maskOf(latin1(await file.read(position + 4, Math.min(length, readBytes))))
    position += 4 + length
  }
  return { ...metadata, firstByte: position, mask }
}

/** The speakers of layouts other than those of FLAC, as a comment states them: RFC 9639, 8.6.2. */
function maskOf(comments: string): number | undefined {
  const digits = /WAVEFORMATEXTENSIBLE_CHANNEL_MASK=0x([\da-f]{1,8})/i.exec(comments)?.[1]
  return digits === undefined ? undefined : Number.parseInt(digits, 16)
}
