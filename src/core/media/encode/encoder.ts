import { createHash } from 'node:crypto'
import type { AudioEncoder, EncoderState } from './audio-encoder.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { createFile } from './local-file.js'
import { formatTable, type OutputFormat } from './output-format.js'
import type { PcmFormat } from './pcm-encoder.js'

export interface EncoderOptions {
  sampleRate: number
  channels: number
  format: OutputFormat
  tags?: AudioTags
  /** Continues the existing file that an encoder left in this `state`. Default: a new file. */
  from?: EncoderState
}

/**
 * Creates or replaces the file. Only the encoder of this format is loaded: each stem's thread loads its own.
 *
 * @throws StemworkError `INVALID_OPTIONS` for MP3 at a sample rate or with a channel count that the format lacks
 */
export async function openEncoder(path: string, options: EncoderOptions): Promise<AudioEncoder> {
  const { format, sampleRate, channels, tags } = options
  const { container, bits } = formatTable[format]
  switch (container) {
    case 'WAV':
      return (await import('./wav-writer.js')).openWavWriter(path, { ...options, format: pcmFormat(bits) })
    case 'AIFF':
      return (await import('./aiff-writer.js')).openAiffWriter(path, { ...options, format: pcmFormat(bits) })
    case 'FLAC':
      return (await import('./flac-writer.js')).openFlacWriter(
        await createFile(path),
        { sampleRate, channels, bits: bits === 24 ? 24 : 16 },
        createHash('md5'),
        tags,
      )
    case 'MP3':
      return (await import('./mp3-writer.js')).openMp3Writer(() => createFile(path), { sampleRate, channels, tags })
    default:
      return container satisfies never
  }
}

/** Samples of 32 bits are floats. */
function pcmFormat(bits: 16 | 24 | 32 | undefined): PcmFormat {
  if (bits === 32) return '32f'
  return bits === 24 ? '24' : '16'
}
