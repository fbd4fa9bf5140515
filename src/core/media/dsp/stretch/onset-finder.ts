/** Onsets are found on blocks of this many seconds. */
const blockSeconds = 0.003
/** An onset is this many times as strong as the mean and the strongest of the blocks before it. */
const riseOfMean = 6
const riseOfMost = 2.5
const blocksBefore = 10
/** Within its block, an onset is where this share of the block's energy has been reached. */
const shareBefore = 0.05
/** Of several onsets within this time the first one counts. */
const apartSeconds = 0.06
/** Below this mean square of the slope nothing is an onset. */
const floor = 1e-9

/** Finds onsets by the energy of the slope, which rises more sharply at a stroke than the energy itself does. */
export function onsetFinder(sampleRate: number, channelCount: number) {
  const block = Math.max(1, Math.round(blockSeconds * sampleRate))
  /** Energies of the blocks before the one that is being filled. */
  const before = new Float64Array(blocksBefore)
  /** Energy of each sample of that block. */
  const energies = new Float64Array(block)
  const latest = new Float64Array(channelCount)
  let [energy, filled, position, last] = [0, 0, 0, -Infinity]

  const isOnset = () => {
    if (energy < floor * block || position - last < apartSeconds * sampleRate) return false
    const sum = before.reduce((total, one) => total + one, 0)
    return !(energy < (riseOfMean * sum) / blocksBefore || energy < riseOfMost * Math.max(...before))
  }
  const startInBlock = () => {
    let sum = 0
    return energies.findIndex((one) => (sum += one) >= shareBefore * energy)
  }
  return {
    /** @returns positions of onsets in blocks that ended, in samples from the first sample ever pushed */
    push(planes: readonly Float32Array[], count: number): number[] {
      const found: number[] = []
      for (let i = 0; i < count; i++) {
        const energyBefore = energy
        for (let channel = 0; channel < planes.length; channel++) {
          const value = planes[channel]![i]!
          const slope = value - latest[channel]!
          latest[channel] = value
          energy += slope * slope
        }
        energies[filled] = energy - energyBefore
        if (++filled < block) continue
        if (isOnset()) {
          found.push(position + startInBlock())
          last = position
        }
        before.copyWithin(0, 1)
        before[blocksBefore - 1] = energy
        position += block
        energy = filled = 0
      }
      return found
    },
  }
}
