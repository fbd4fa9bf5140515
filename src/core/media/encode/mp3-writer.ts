import { invalidOptions } from '../../engine/errors.js'
import type { AudioEncoder } from './audio-encoder.js'
import { decoderDelay, mp3InfoBytes, mp3InfoFrame } from '../decode/mpeg/mp3-info.js'
import type { AudioTags } from '../tags/audio-tags.js'
import { id3Tag } from '../tags/id3-writer.js'
import type { FileWriter } from './file-writer.js'
import { mp3Rates } from './output-format.js'
import { encoderDelay, frameSamples, Mp3Frames } from './mp3/mp3-frames.js'

export interface Mp3Options {
  sampleRate: number
  channels: number
  tags?: AudioTags
}

/**
 * Writes an MP3 file of 320 kbit/s as audio arrives. Its first frame states how many samples the encoder added before
 * and after the audio, so that players that support this restore the original start and length.
 *
 * @throws StemworkError `INVALID_OPTIONS` at a sample rate or with a channel count that the format lacks
 */
export async function openMp3Writer(
  createFile: () => Promise<FileWriter>,
  { sampleRate, channels, tags = {} }: Mp3Options,
): Promise<AudioEncoder> {
  if (!mp3Rates.includes(sampleRate) || channels > 2)
    throw invalidOptions(
      `MP3 files hold one or two channels at ${mp3Rates.join(', ')} Hz, not ${channels} at ${sampleRate} Hz. ` +
        "Choose format 'flac'.",
    )
  const file = await createFile()
  const frames = new Mp3Frames({ sampleRate, channels: channels === 1 ? 1 : 2 })
  /** Samples of the unfinished frame. */
  const held = Array.from({ length: channels }, () => new Float32Array(frameSamples))
  let [pending, sampleCount, frameCount] = [0, 0, 0]
  const header = new Uint8Array(4)
  const tag = id3Tag(tags)
  await file.append(tag)

  const endFrame = async () => {
    const frame = frames.encode(held)
    pending = 0
    if (frameCount++ === 0) {
      header.set(frame.subarray(0, 4))
      // Room for the frame that states the length.
      await file.append(new Uint8Array(mp3InfoBytes(header)))
    }
    await file.gather(frame)
  }
  return {
    async write(planes) {
      const count = planes[0]!.length
      for (let start = 0; start < count;) {
        const end = Math.min(start + frameSamples - pending, count)
        for (const [channel, plane] of planes.entries()) held[channel]!.set(plane.subarray(start, end), pending)
        pending += end - start
        if (pending === frameSamples) await endFrame()
        start = end
      }
      sampleCount += count
    },

    async close() {
      try {
        // Silence, until decoders have output the last sample.
        while (sampleCount > 0 && frameCount * frameSamples < sampleCount + encoderDelay + decoderDelay) {
          for (const plane of held) plane.fill(0, pending)
          await endFrame()
        }
        await file.flush()
        if (frameCount > 0) {
          const facts = { frameCount, bytes: file.bytes - tag.length, encoderDelay, sampleCount }
          await file.correct(mp3InfoFrame(header, facts), tag.length)
        }
        // MP3 stores no integers that could clip; clipping is up to the decoder.
        return { sampleCount, clippedSamples: 0, bytes: file.bytes }
      } finally {
        await file.close()
      }
    },

    abandon: () => file.close(),
  }
}
