import { badInput } from '../../engine/errors.js'
import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'
import { openCodec } from './codec-stream.js'
import { openFileBytes, type FileBytes } from './file-bytes.js'
import { openFlac } from './flac-reader.js'
import { orderMp4 } from './mp4-order.js'
import { statedSeconds } from './stated-length.js'
import { sniff, sniffBytes, type InputFormat } from './sniff.js'
import { openWav } from './wav-reader.js'
import { damagedFile } from './damaged-file.js'

export interface OpenAudioOptions {
  signal?: AbortSignal
  /** Longer audio is rejected: at once if the header states the length, else as soon as that much is decoded. */
  maxSeconds?: number
}

/** Small, because a codec may expand each byte of silence to a thousand samples. */
const codecPieceBytes = 16 * 1024

const lowestRate = 2_000
const highestRate = 768_000

/** Stream properties object's type for video (ASF specification, 10.5); headers with large pictures are cut off here. */
const asfVideoStream = Buffer.from('c0ef19bc4d5bcf11a8fd00805f5c442b', 'hex')
const asfHeaderBytes = 1024 * 1024

/**
 * Opens an audio file, or a video file with sound, for streaming. Memory does not grow with its length.
 *
 * @throws StemworkError `BAD_INPUT`, here or while `blocks` is read: `unsupported_format` (not audio, or audio in a format that
 * cannot be decoded), `no_audio` (empty), `decode_failed` (damaged beyond use) or `too_long`. Truncated files are read as far
 * as they go.
 */
export async function openAudio(path: string, options: OpenAudioOptions = {}): Promise<AudioStream> {
  const file = await openFileBytes(path, options.signal)
  const head = await readHead(file)
  const format = sniff(head.bytes)
  const stream = await openFormat(file, format, head, options.maxSeconds ?? Infinity)
  if (!(stream.sampleRate >= lowestRate && stream.sampleRate <= highestRate)) {
    throw badInput(
      'decode_failed',
      `The file claims a sample rate of ${stream.sampleRate} Hz; expected ${lowestRate} to ${highestRate}.`,
    )
  }
  return limited({ ...stream, sampleRate: Math.round(stream.sampleRate), readFraction: file.readFraction }, options)
}

async function openFormat(file: FileBytes, format: InputFormat, head: Head, maxSeconds: number): Promise<AudioStream> {
  const whole = () => file.pieces({ pieceBytes: codecPieceBytes })
  switch (format) {
    case 'wav':
      return (await openWav(file)) ?? openCodec('wav', whole(), format)
    case 'flac':
      return openFlac(file, head.position)
    case 'mp4': {
      const { pieces, seconds } = await orderMp4(file, codecPieceBytes)
      refuseLong(seconds, maxSeconds)
      return openCodec('mp4', pieces, format)
    }
    case 'wma':
      // The decoder would decode the video stream as sound.
      if (Buffer.from(await file.read(0, asfHeaderBytes)).includes(asfVideoStream)) {
        throw badInput(
          'unsupported_format',
          'The file is a Windows Media video, which cannot be decoded. Send only its sound, for example as WMA or MP3.',
        )
      }
      return openCodec('wma', whole(), format)
    default:
      refuseLong(await statedSeconds(file, format, head.bytes), maxSeconds)
      return openCodec(codecNames[format] ?? format, whole(), format)
  }
}

/** Names in `audio-decode` that differ from ours. */
const codecNames: Partial<Record<InputFormat, string>> = { vorbis: 'oga', 'ogg-flac': 'flac' }

/** Compressed formats include the encoder's padding, up to a few thousand samples. */
const paddingSeconds = 0.2

function refuseLong(seconds: number | undefined, maxSeconds: number): void {
  if (seconds !== undefined && seconds > maxSeconds + paddingSeconds) throw tooLong(maxSeconds)
}

interface Head {
  bytes: Uint8Array
  position: number
}

/** The first bytes after an ID3v2 tag, which can precede MP3, AAC, FLAC and others and be larger than any buffer. */
async function readHead(file: FileBytes): Promise<Head> {
  let position = 0
  for (;;) {
    const head = await file.read(position, sniffBytes)
    if (head.length < 10 || String.fromCharCode(head[0], head[1], head[2]) !== 'ID3') return { bytes: head, position }
    const size = (head[6] << 21) | (head[7] << 14) | (head[8] << 7) | head[9]
    position += 10 + size + (head[5] & 0x10 ? 10 : 0)
    if (position >= file.size) throw damagedFile('The file ends within its ID3 tag, before any audio. It was cut off.')
  }
}

function limited(stream: AudioStream, { signal, maxSeconds = Infinity }: OpenAudioOptions): AudioStream {
  if (stream.sampleCount !== undefined && stream.sampleCount > maxSeconds * stream.sampleRate) throw tooLong(maxSeconds)
  return { ...stream, blocks: limitedBlocks(stream, maxSeconds, signal) }
}

async function* limitedBlocks(
  { blocks, sampleRate }: AudioStream,
  maxSeconds: number,
  signal?: AbortSignal,
): AsyncGenerator<AudioBlock> {
  let sampleCount = 0
  for await (const block of blocks) {
    signal?.throwIfAborted()
    sampleCount += block.channels[0].length
    if (sampleCount > maxSeconds * sampleRate) throw tooLong(maxSeconds)
    yield block
  }
}

function tooLong(maxSeconds: number) {
  return badInput('too_long', `The audio is longer than the allowed ${maxSeconds} seconds. Shorten it.`)
}
