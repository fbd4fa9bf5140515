import { type BeatNetwork, beatLogitsReader } from './beat-logits.js'
import { type BeatTimes, beatTimes } from './beat-times.js'
import { LogMel } from './log-mel.js'

export type BeatTracker = Awaited<ReturnType<typeof createBeatTracker>>

/**
 * Finds the beats of mono audio at 22,050 Hz with a network like Beat This!. Memory grows by 800 bytes for
 * each second.
 */
export async function createBeatTracker(network: BeatNetwork) {
  const mel = await LogMel.create()
  const logits = beatLogitsReader(network)
  return {
    add: (samples: Float32Array): Promise<void> => logits.add(mel.add(samples)),
    async finish(): Promise<BeatTimes> {
      await logits.add(mel.finish())
      return beatTimes(await logits.finish())
    },
    close: () => mel.close(),
  }
}
