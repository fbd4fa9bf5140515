import type { AudioEncoder, WrittenAudio } from './audio-encoder.js'
import { openEncoder } from './encoder.js'
import { formatTable, type OutputFormat } from './output-format.js'
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
  const { bits, isCompressed } = formatTable[format]
  const open = isCompressed ? openThreadedEncoder : openEncoder
  const { sampleRate, channelCount: channels } = stream
  const noise = dither && (bits === 16 || bits === 24) ? new Dither(bits) : undefined
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

/**
 * Converts the stream so that the format can store it: to at most its number of channels, and to the format's nearest
 * rate not above the stream's, if there is one.
 */
export function fitted(stream: AudioStream, format: OutputFormat): AudioStream {
  const { mostChannels = Infinity, rates = Infinity } = formatTable[format]
  const few = withChannels(stream, stream.channelCount > mostChannels ? 2 : undefined)
  return resample(inFileOrder(few), nearestRate(stream.sampleRate, rates))
}

/** For formats with certain rates: 44.1 kHz for its multiples, else the highest that is not above the given one. */
function nearestRate(rate: number, rates: readonly number[] | number): number {
  if (typeof rates === 'number') return Math.min(rate, rates)
  return rate % 44_100 === 0 ? 44_100 : Math.max(Math.min(...rates), ...rates.filter((each) => each <= rate))
}
