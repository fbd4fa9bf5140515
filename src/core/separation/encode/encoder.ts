import type { AudioEncoder } from './audio-encoder.js'
import type { AudioTags } from '../tags/audio-tags.js'
import type { OutputFormat } from './output-format.js'
import { FlacWriter } from './flac-writer.js'
import { Mp3Writer } from './mp3-writer.js'
import { WavWriter } from './wav-writer.js'

export interface EncoderOptions {
  sampleRate: number
  channels: number
  format: OutputFormat
  tags?: AudioTags
}

/**
 * Creates or replaces the file.
 *
 * @throws StemworkError `INVALID_OPTIONS` for MP3 at a sample rate or with channels that the format does not have
 */
export async function openEncoder(
  path: string,
  { sampleRate, channels, format, tags }: EncoderOptions,
): Promise<AudioEncoder> {
  switch (format) {
    case '16':
    case '24':
    case '32f':
      return WavWriter.open(path, { sampleRate, channels, format, tags })
    case 'flac':
      return FlacWriter.open(path, { sampleRate, channels, bits: 16 }, tags)
    case 'flac24':
      return FlacWriter.open(path, { sampleRate, channels, bits: 24 }, tags)
    case 'mp3':
      return Mp3Writer.open(path, { sampleRate, channels, tags })
    default:
      return format satisfies never
  }
}
