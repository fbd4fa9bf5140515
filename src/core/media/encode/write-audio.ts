import type { AudioEncoder, WrittenAudio } from './audio-encoder.js'
import { openEncoder } from './encoder.js'
import { isCompressed, mp3Rates, type OutputFormat } from './output-format.js'
import { openThreadedEncoder } from './threaded-encoder.js'
import type { AudioStream } from '../dsp/audio-stream.js'
import { resample } from '../dsp/resample.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { Dither } from '../dsp/dither.js'
import { inFileOrder, withChannels } from '../dsp/edits.js'

export interface WriteOptions {
  format: OutputFormat
  tags: AudioTags
  /** Whether to add noise before samples are rounded to integers. */
  dither: boolean
  signal: AbortSignal
}

/** Encodes a stream as a file. If it fails, the caller must remove the incomplete file. */
export async function writeAudio(stream: AudioStream, path: string, options: WriteOptions): Promise<WrittenAudio> {
  const { format, tags, dither, signal } = options
  const open = isCompressed(format) ? openThreadedEncoder : openEncoder
  const { sampleRate, channelCount: channels } = stream
  const bits = integerBits(format)
  const noise = dither && bits !== undefined ? new Dither(bits) : undefined
  const encoder: AudioEncoder = await open(path, { sampleRate, channels, format, tags })
  try {
    for await (const block of stream.blocks) {
      signal.throwIfAborted()
      await encoder.write(noise ? noise.apply(block.channels) : block.channels)
    }
    return await encoder.close()
  } catch (error) {
    await encoder.abandon().catch(() => undefined)
    throw error
  }
}

/** FLAC stores the rate in 20 bits and the number of channels in three. */
const mostFlacRate = 655_350
const mostFlacChannels = 8

/**
 * The stream as the format can store it: with at most its number of channels, and at the format's nearest rate not
 * above its own.
 */
export function fitted(stream: AudioStream, format: OutputFormat): AudioStream {
  switch (format) {
    case 'mp3': {
      return resample(withChannels(stream, stream.channelCount > 2 ? 2 : undefined), mp3Rate(stream.sampleRate))
    }
    case 'flac':
    case 'flac24': {
      const few = withChannels(stream, stream.channelCount > mostFlacChannels ? 2 : undefined)
      return resample(inFileOrder(few), Math.min(stream.sampleRate, mostFlacRate))
    }
    default:
      return inFileOrder(stream)
  }
}

/** Half of 88.2 kHz; else the highest rate not above the given one. */
function mp3Rate(rate: number): number {
  return rate % 44_100 === 0 ? 44_100 : (mp3Rates.find((each) => each <= rate) ?? 8000)
}

function integerBits(format: OutputFormat): 16 | 24 | undefined {
  if (format === '16' || format === 'flac') return 16
  return format === '24' || format === 'flac24' ? 24 : undefined
}
