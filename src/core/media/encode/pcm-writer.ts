import { badInput } from '../../engine/errors.js'
import type { AudioTags } from '../tags/audio-tags.js'
import type { AudioEncoder, EncoderState } from './audio-encoder.js'
import type { FileWriter } from './file-writer.js'
import { bytesPerSample, PcmEncoder, type PcmFormat } from './pcm-encoder.js'

export interface PcmWriterOptions {
  sampleRate: number
  channels: number
  format: PcmFormat
  /** Written after the samples. */
  tags?: AudioTags
  /** Continues the existing file that a writer left in this `state`. Default: a new file. */
  from?: EncoderState
}

/** Sizes of the parts of a file. */
export interface PcmBytes {
  data: number
  tags: number
}

/** The parts of a file around the samples. */
export interface PcmContainer {
  /**
   * All bytes before the samples, always the same number.
   *
   * @param bytes absent while the file grows
   */
  header(bytes?: PcmBytes): Uint8Array
  /** The chunks of tags after the samples, of even length. */
  tagChunks(tags: AudioTags): Uint8Array
  isBigEndian: boolean
  /** Most bytes of samples that the header can state, and the message for more. Absent: no limit. */
  limit?: { bytes: number; message: string }
}

/**
 * Writes a file of uncompressed samples as audio arrives; `close` completes the header. Integers are rounded from
 * `sample * 2^(bits-1)` and clipped, never wrapped or dithered, so samples from a file of the same width keep their
 * bytes. `write` throws `BAD_INPUT` `too_long` when the header could not state the length.
 *
 * @param file a new one, or the one that `options.from` continues
 */
export async function openPcmWriter(
  file: FileWriter,
  container: PcmContainer,
  { channels, format, tags = {}, from }: PcmWriterOptions,
): Promise<Required<AudioEncoder>> {
  const { limit } = container
  const pcm = new PcmEncoder(format, container.isBigEndian)
  const header = container.header()
  let dataBytes = from ? from.bytes - header.length : 0
  if (from) pcm.clippedSamples = from.clippedSamples
  else await file.append(header)
  return {
    state: () => ({ bytes: file.bytes, clippedSamples: pcm.clippedSamples }),

    async write(planes) {
      const bytes = pcm.encode(planes)
      if (limit && dataBytes + bytes.length > limit.bytes) throw badInput('too_long', limit.message)
      await file.append(bytes)
      dataBytes += bytes.length
    },

    async close() {
      try {
        if (dataBytes % 2) await file.append(new Uint8Array(1))
        const chunks = container.tagChunks(tags)
        await file.append(chunks)
        await file.correct(container.header({ data: dataBytes, tags: chunks.length }), 0)
        const sampleCount = dataBytes / (bytesPerSample[format] * channels)
        return { sampleCount, clippedSamples: pcm.clippedSamples, bytes: file.bytes }
      } finally {
        await file.close()
      }
    },

    abandon: () => file.close(),
  }
}
