import type { AudioBlock, AudioStream } from '../../media/dsp/audio-stream.js'
import { SampleWindow } from '../../media/dsp/sample-window.js'

/** The sum of a stream and, at a gain, another one of the same rate and channels. As long as the first. */
export function mixedStreams(stream: AudioStream, added: AudioStream, gainDb: number): AudioStream {
  return { ...stream, blocks: summed(stream, added, 10 ** (gainDb / 20)) }
}

async function* summed(stream: AudioStream, added: AudioStream, gain: number): AsyncGenerator<AudioBlock> {
  const window = new SampleWindow(added.channelCount, 0)
  const others = added.blocks[Symbol.asyncIterator]()
  let position = 0
  for await (const { channels } of stream.blocks) {
    const end = position + channels[0]!.length
    while (window.end < end) {
      const next = await others.next()
      if (next.done) break
      window.append(next.value.channels)
    }
    const views = window.views(position, Math.min(end, window.end))
    yield { channels: channels.map((plane, channel) => plane.map((v, i) => v + gain * (views[channel]![i] ?? 0))) }
    window.dropBefore(end)
    position = end
  }
}
