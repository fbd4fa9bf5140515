import { melBands } from './log-mel.js'

/** Most frames that the network takes, and the number at each end that have too little context. */
const chunkFrames = 1500
const borderFrames = 6
const step = chunkFrames - 2 * borderFrames

/** Logits of beats and of first beats of bars, one per frame. */
export interface BeatLogits {
  beat: Float32Array
  downbeat: Float32Array
}

/** Runs the network on `frameCount` frames of 128 bands, one after the other. */
export type BeatNetwork = (frames: Float32Array<ArrayBuffer>, frameCount: number) => Promise<BeatLogits>

/**
 * Reads logits of a spectrogram of any length, in chunks as the authors cut it: each overlaps its neighbours by the
 * borders, the last one is moved back to end with the piece, and where two overlap the earlier one counts. Holds two
 * chunks of frames.
 */
export function beatLogitsReader(network: BeatNetwork) {
  /** The frames from `from` on. */
  const held: Float32Array[] = []
  let from = 0
  let start = -borderFrames
  const beats: number[] = []
  const downbeats: number[] = []
  const frameCount = () => from + held.length
  /** Pads the piece with silence at both ends. */
  const read = async (first: number) => {
    const end = Math.min(first + chunkFrames, frameCount() + borderFrames)
    const frames = new Float32Array((end - first) * melBands)
    for (let frame = Math.max(0, first); frame < Math.min(end, frameCount()); frame++)
      frames.set(held[frame - from]!, (frame - first) * melBands)
    const { beat, downbeat } = await network(frames, end - first)
    for (let frame = beats.length; frame < end - borderFrames; frame++) {
      beats.push(beat[frame - first]!)
      downbeats.push(downbeat[frame - first]!)
    }
  }
  return {
    async add(frames: readonly Float32Array[]): Promise<void> {
      for (const frame of frames) {
        held.push(frame)
        if (frameCount() < start + chunkFrames) continue
        await read(start)
        start += step
        // The last chunk may begin almost a step before the next one.
        const kept = Math.max(from, start - step)
        held.splice(0, kept - from)
        from = kept
      }
    },
    async finish(): Promise<BeatLogits> {
      const count = frameCount()
      for (; start < count - borderFrames; start += step) {
        const isLast = start + step >= count - borderFrames
        await read(isLast && count > step ? count - (chunkFrames - borderFrames) : start)
      }
      return { beat: Float32Array.from(beats), downbeat: Float32Array.from(downbeats) }
    },
  }
}
