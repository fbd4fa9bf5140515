import { melBands } from './log-mel.js'

/** Most frames that the network takes, and how many at each end have too little context. */
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
 * Logits of a spectrogram of any length, in chunks as the authors cut it: each overlaps its neighbours by the borders,
 * the last one is moved back so that it ends with the piece, and where chunks overlap the earlier one counts. Holds two
 * chunks of frames.
 */
export class BeatLogitsReader {
  readonly #network: BeatNetwork
  /** The frames from `#from` on. */
  #held: Float32Array[] = []
  #from = 0
  #start = -borderFrames
  readonly #beat: number[] = []
  readonly #downbeat: number[] = []

  constructor(network: BeatNetwork) {
    this.#network = network
  }

  async add(frames: readonly Float32Array[]): Promise<void> {
    for (const frame of frames) {
      this.#held.push(frame)
      if (this.#frameCount < this.#start + chunkFrames) continue
      await this.#read(this.#start)
      this.#start += step
      // The last chunk may begin almost a step before the next one.
      const from = Math.max(this.#from, this.#start - step)
      this.#held.splice(0, from - this.#from)
      this.#from = from
    }
  }

  async finish(): Promise<BeatLogits> {
    const count = this.#frameCount
    for (; this.#start < count - borderFrames; this.#start += step) {
      const isLast = this.#start + step >= count - borderFrames
      await this.#read(isLast && count > step ? count - (chunkFrames - borderFrames) : this.#start)
    }
    return { beat: Float32Array.from(this.#beat), downbeat: Float32Array.from(this.#downbeat) }
  }

  get #frameCount(): number {
    return this.#from + this.#held.length
  }

  /** Silence stands for what is before and after the piece. */
  async #read(start: number): Promise<void> {
    const end = Math.min(start + chunkFrames, this.#frameCount + borderFrames)
    const frames = new Float32Array((end - start) * melBands)
    for (let frame = Math.max(0, start); frame < Math.min(end, this.#frameCount); frame++)
      frames.set(this.#held[frame - this.#from]!, (frame - start) * melBands)
    const { beat, downbeat } = await this.#network(frames, end - start)
    for (let frame = this.#beat.length; frame < end - borderFrames; frame++) {
      this.#beat.push(beat[frame - start]!)
      this.#downbeat.push(downbeat[frame - start]!)
    }
  }
}
