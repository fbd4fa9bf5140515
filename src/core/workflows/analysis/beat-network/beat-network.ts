import { invalidOptions } from '../../../engine/errors.js'
import type { BeatNetwork } from '../../../media/analysis/beats/beat-logits.js'
import { melBands } from '../../../media/analysis/beats/log-mel.js'
import type { Network, TensorInfo } from '../../../models/session/network.js'

/**
 * Wraps a network like Beat This!: frames of a spectrogram in, logits of beats and of first beats out. Exports differ
 * in the name of the input and in dimensions of size 1, so the only input is taken, and the outputs `beat` and
 * `downbeat`, or else the first two.
 *
 * @throws StemworkError `INVALID_OPTIONS` if it has other inputs or outputs
 */
export function beatNetwork(network: Network, model: string): BeatNetwork {
  const { inputs, outputs } = network
  const [input] = inputs
  const named = (name: string) => outputs.find((output) => output.name === name)
  const [beat, downbeat] = named('beat') && named('downbeat') ? [named('beat'), named('downbeat')] : outputs
  const bands = input?.shape.at(-1)
  if (inputs.length !== 1 || !input || !beat || !downbeat || (typeof bands === 'number' && bands !== melBands))
    throw invalidOptions(
      `The network of model ${model} does not find beats: expected one input of ${melBands} bands and the outputs ` +
        'beat and downbeat. Choose another model.',
    )
  return async (frames, frameCount) => {
    const logits = (output: TensorInfo) => ({
      dims: dimensions(output.shape.length, frameCount),
      data: new Float32Array(frameCount),
    })
    const feeds = {
      [input.name]: { dims: [...dimensions(input.shape.length - 1, frameCount), melBands], data: frames },
    }
    const { fetches } = await network.run(feeds, { [beat.name]: logits(beat), [downbeat.name]: logits(downbeat) })
    const of = ({ name }: TensorInfo) => fetches[name]?.data ?? new Float32Array()
    return { beat: of(beat), downbeat: of(downbeat) }
  }
}

/** The shape of the frames in this number of dimensions: `[1, frames, 1, ...]`. */
function dimensions(rank: number, frameCount: number): number[] {
  return rank <= 1 ? [frameCount] : [1, frameCount, ...Array<number>(rank - 2).fill(1)]
}
