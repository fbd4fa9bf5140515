import { sampleAt } from '../sources/sample-at.js'

/** A track as it is heard in the mix. */
export interface HeardTrack {
  gain: number
  /** -1 (left) to 1 (right). */
  pan: number
  /** Highest sample of each stretch, with the same stretches for all tracks; 1 where it is unknown. */
  highest?: Float32Array
}

/** How `StereoPannerNode` pans a track: how much of one channel crosses to the other, and how much stays. */
export function panned(pan: number): { crossed: number; kept: number } {
  const angle = (Math.abs(pan) * Math.PI) / 2
  return { crossed: Math.sin(angle), kept: Math.cos(angle) }
}

/**
 * Factor that attenuates a mix so that no sample can be above full scale. 1 for the unchanged song; it changes without
 * a step.
 *
 * @param isWhole whether the tracks add up to the song, which is not above full scale
 */
export function headroom(tracks: readonly HeardTrack[], isWhole: boolean): number {
  const stretches = Math.max(1, ...tracks.map(({ highest }) => highest?.length ?? 0))
  let most = 1
  for (let index = 0; index < stretches; index++) {
    let [sum, change] = [0, 0]
    for (const { gain, pan, highest } of tracks) {
      const { crossed } = panned(pan)
      const peak = highest && index < highest.length ? sampleAt(highest, index) : 1
      sum += gain * (1 + crossed) * peak
      change += (Math.abs(gain - 1) + gain * crossed) * peak
    }
    most = Math.max(most, isWhole ? Math.min(sum, 1 + change) : sum)
  }
  return 1 / most
}
