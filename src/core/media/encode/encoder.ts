import type { AudioEncoder, EncoderState } from './audio-encoder.js'
import type { AudioTags } from '../tags/audio-tags.js'
import type { OutputFormat } from './output-format.js'

export interface EncoderOptions {
  sampleRate: number
  channels: number
  format: OutputFormat
  tags?: AudioTags
  /** Continues the existing file, as an encoder with such a `state` left it. Default: a new file. */
  from?: EncoderState
}

/**
 * Creates or replaces the file. Only the encoder of this format is loaded: each stem's thread loads its own.
 *
 * @throws StemworkError `INVALID_OPTIONS` for MP3 at a sample rate or with channels that the format does not have
 */
export async function openEncoder(
  path: string,
  { sampleRate, channels, format, tags, from }: EncoderOptions,
): Promise<AudioEncoder> {
  switch (format) {
    case '16':
    case '24':
    case '32f':
      return (await import('./wav-writer.js')).WavWriter.open(path, { sampleRate, channels, format, tags, from })
    case 'flac':
      return (await import('./flac-writer.js')).FlacWriter.open(path, { sampleRate, channels, bits: 16 }, tags)
    case 'flac24':
      return (await import('./flac-writer.js')).FlacWriter.open(path, { sampleRate, channels, bits: 24 }, tags)
    case 'mp3':
      return (await import('./mp3-writer.js')).Mp3Writer.open(path, { sampleRate, channels, tags })
    default:
      return format satisfies never
  }
}
