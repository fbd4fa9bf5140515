import { type BeatNetwork, BeatLogitsReader } from './beat-logits.js'
import { type BeatTimes, beatTimes } from './beat-times.js'
import { LogMel } from './log-mel.js'

/**
 * Finds the beats of mono audio at 22,050 Hz with a network like Beat This!. Memory grows by 800 bytes for
 * each second.
 */
export class BeatTracker {
  readonly #mel: LogMel
  readonly #logits: BeatLogitsReader

  private constructor(mel: LogMel, network: BeatNetwork) {
    this.#mel = mel
    this.#logits = new BeatLogitsReader(network)
  }

  static async create(network: BeatNetwork): Promise<BeatTracker> {
    return new BeatTracker(await LogMel.create(), network)
  }

  async add(samples: Float32Array): Promise<void> {
    await this.#logits.add(this.#mel.add(samples))
  }

  async finish(): Promise<BeatTimes> {
    await this.#logits.add(this.#mel.finish())
    return beatTimes(await this.#logits.finish())
  }

  close(): void {
    this.#mel.close()
  }
}
