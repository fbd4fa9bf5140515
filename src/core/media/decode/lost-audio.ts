/** A longer gap is a wrong number, not a loss: the audio after it is then joined to the audio before it. */
export const longestGapSeconds = 600
const blockSamples = 65_536

/** Silence in place of lost audio: blocks of one plane per channel, each with the given facts. */
export function* silence<Facts>(
  sampleCount: number,
  channelCount: number,
  facts: Facts,
): Generator<Facts & { channels: Float32Array[] }> {
  for (let left = sampleCount; left > 0; left -= blockSamples) {
    const length = Math.min(left, blockSamples)
    yield { ...facts, channels: Array.from({ length: channelCount }, () => new Float32Array(length)) }
  }
}
