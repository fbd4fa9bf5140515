import type { AudioStream } from '../../../media/dsp/audio-stream.js'
import type { TrackStatistics } from '../architectures/architecture.js'

/** Mean and unbiased standard deviation of the mono mix (the mean over channels) of a whole stream. */
export async function trackStatistics({ blocks }: Pick<AudioStream, 'blocks'>): Promise<TrackStatistics> {
  let count = 0
  let sum = 0
  let squares = 0
  for await (const { channels } of blocks) {
    const sampleCount = channels[0]!.length
    for (let i = 0; i < sampleCount; i++) {
      let mono = 0
      for (let channel = 0; channel < channels.length; channel++) mono += channels[channel]![i]!
      mono /= channels.length
      sum += mono
      squares += mono * mono
    }
    count += sampleCount
  }
  const mean = count > 0 ? sum / count : 0
  const variance = count > 1 ? Math.max(0, squares - count * mean * mean) / (count - 1) : 0
  return { mean, standardDeviation: Math.sqrt(variance) }
}
