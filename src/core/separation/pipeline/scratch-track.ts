import { rm } from 'node:fs/promises'
import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'
import { openAudio } from '../decode/open-audio.js'
import { WavWriter } from '../encode/wav-writer.js'
import type { TrackStatistics } from '../architectures/architecture.js'
import { trackStatistics } from './track-statistics.js'

/** A decoded track in a temporary file, for what has to see it more than once: memory must not grow with its length. */
export class ScratchTrack {
  readonly statistics: TrackStatistics
  readonly #path: string

  private constructor(path: string, statistics: TrackStatistics) {
    this.#path = path
    this.statistics = statistics
  }

  /** Writes the stream to a file at this path, which is removed again when that fails. */
  static async write(stream: AudioStream, path: string): Promise<ScratchTrack> {
    const { sampleRate, channelCount: channels } = stream
    const writer = await WavWriter.open(path, { sampleRate, channels, format: '32f' })
    try {
      const statistics = await trackStatistics({ ...stream, blocks: written(stream.blocks, writer) })
      await writer.close()
      return new ScratchTrack(path, statistics)
    } catch (error) {
      await writer.abandon().catch(() => undefined)
      await rm(path, { force: true })
      throw error
    }
  }

  /** The track from its start. */
  open(signal?: AbortSignal): Promise<AudioStream> {
    return openAudio(this.#path, { signal })
  }

  async remove(): Promise<void> {
    await rm(this.#path, { force: true })
  }
}

/**
 * A decoder may give the whole track in one block: it is written piece by piece, so that only this thread's copy of it
 * exists.
 */
const pieceSamples = 65_536

async function* written(blocks: AsyncIterable<AudioBlock>, writer: WavWriter): AsyncGenerator<AudioBlock> {
  for await (const { channels } of blocks) {
    for (let from = 0; from < channels[0].length; from += pieceSamples) {
      const piece = channels.map((plane) => plane.subarray(from, from + pieceSamples))
      await writer.write(piece)
      yield { channels: piece }
    }
  }
}
