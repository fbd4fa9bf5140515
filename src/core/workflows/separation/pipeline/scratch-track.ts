import { rm } from 'node:fs/promises'
import type { AudioBlock, AudioStream } from '../../../media/dsp/audio-stream.js'
import { openAudio } from '../../../media/decode/open-audio.js'
import type { AudioEncoder } from '../../../media/encode/audio-encoder.js'
import { openWavWriter } from '../../../media/encode/wav-writer.js'
import { trackStatistics } from './track-statistics.js'

/** A decoded track in a temporary file, for reading it more than once without memory that grows with its length. */
export type ScratchTrack = Awaited<ReturnType<typeof writeScratchTrack>>

/** Writes the stream to a file at this path, which `open` reads from its start. The file is removed if that fails. */
export async function writeScratchTrack(stream: AudioStream, path: string) {
  const { sampleRate, channelCount: channels } = stream
  const writer = await openWavWriter(path, { sampleRate, channels, format: '32f' })
  const remove = () => rm(path, { force: true })
  try {
    const statistics = await trackStatistics({ ...stream, blocks: written(stream.blocks, writer) })
    await writer.close()
    return { statistics, open: (signal?: AbortSignal) => openAudio(path, { signal }), remove }
  } catch (error) {
    await writer.abandon().catch(() => undefined)
    await remove()
    throw error
  }
}

/**
 * A decoder may return the whole track in one block. It is written in pieces, so that there is no second copy of it.
 */
const pieceSamples = 65_536

async function* written(blocks: AsyncIterable<AudioBlock>, writer: AudioEncoder): AsyncGenerator<AudioBlock> {
  for await (const { channels } of blocks) {
    for (let from = 0; from < channels[0]!.length; from += pieceSamples) {
      const piece = channels.map((plane) => plane.subarray(from, from + pieceSamples))
      await writer.write(piece)
      yield { channels: piece }
    }
  }
}
