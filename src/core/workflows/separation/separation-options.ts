import { invalidOptions, type StemworkError } from '../../engine/errors.js'
import type { Checkpoint } from '../../engine/workflow/checkpoint.js'
import type { Decoders } from '../../media/decode/open-audio.js'
import type { OutputFormat } from '../../media/encode/output-format.js'
import type { StemName } from '../../models/stems.js'
import { type Band, type EnsembleAlgorithm, isSpectral } from '../../models/ensemble-algorithm.js'
import type { SeparationProgress } from './separate-track.js'
import { coversAllFrequencies } from './pipeline/spectral-ensemble.js'
import type { AudioTags } from '../../media/tags/audio-tags.js'
import type { WarmNetworkOptions } from '../../models/session/warm-networks.js'
import type { ArchitectureOptions } from './architectures/architecture.js'

/** One model of an ensemble. */
export interface ModelChoice {
  /** Name of the model, or the path of its manifest or folder. */
  model: string
  /** Relative weight in the mean. Default: 1. */
  weight?: number
  /** Lowest frequency at which the model takes part, in Hz, for the algorithms `*_fft`. Default: 0. */
  fromHertz?: number
  /** The frequency from which the model no longer takes part, in Hz. Default: none. */
  toHertz?: number
}

export interface SeparationOptions extends WarmNetworkOptions, Omit<ArchitectureOptions, 'stems'> {
  /** Paths of the files to write, by stem. */
  outputs: Partial<Record<StemName, string>>
  /**
   * Name of a model, or the path of its manifest or folder (`model.json` and its ONNX files). With several models, each
   * stem is made of their estimates by `ensemble`, and the accompaniments are the rest of the mixture. Default: the
   * bundled model.
   */
  model?: string | readonly ModelChoice[]
  /** Algorithm that combines the estimates of several models. Default: `avg_wave`, their weighted mean. */
  ensemble?: EnsembleAlgorithm
  /** Tags to write into the files. Default: none. */
  tags?: (stem: StemName) => AudioTags
  /** Format of the files. Default: `'16'`, 16-bit WAV. */
  format?: OutputFormat
  /** Number of passes to average, with segments shifted by up to half a second; 1 to 20. Default: 1. */
  shifts?: number
  /** Segments per network run, 1 to 64, if the network supports batches: for GPUs. Default: 1. */
  batch?: number
  /**
   * Takes the accompaniments from the model, if it has them, instead of subtracting the vocals from the mixture.
   * Default: false.
   */
  ownAccompaniments?: boolean
  /** Programs that may decode what the package cannot. Default: none. */
  decoders?: Decoders
  /** Rejects longer audio with `BAD_INPUT`, reason `too_long`. */
  maxSeconds?: number
  /** Keeps peaks beside the files while they grow (`openGrowingPeaks`), to be drawn. Default: false. */
  growingPeaks?: boolean
  /** Keeps finished segments for a later run of the same job. Default: keeps none. */
  checkpoint?: Checkpoint
  /** Checked between segments, that is, within a second or two. */
  signal?: AbortSignal
  onProgress?(progress: SeparationProgress): void
}

/** @throws StemworkError `INVALID_OPTIONS` naming the option that is wrong */
export function checkOptions(options: SeparationOptions): void {
  const { outputs, model, overlap = 0, shifts = 1, batch = 1 } = options
  if (!(overlap >= 0 && overlap <= 0.9)) throw invalid(`overlap is ${overlap}; expected a number from 0 to 0.9.`)
  if (!isWholeNumber(shifts, 20)) throw invalid(`shifts is ${shifts}; expected a whole number from 1 to 20.`)
  if (!isWholeNumber(batch, 64)) throw invalid(`batch is ${batch}; expected a whole number from 1 to 64.`)
  if (Object.keys(outputs).length === 0) throw invalid('outputs is empty. Name at least one stem to write.')
  if (typeof model !== 'object') return
  if (model.length === 0) throw invalid('model is an empty list. Name at least one model.')
  checkEnsemble(model, options.ensemble ?? 'avg_wave')
}

/** The frequencies that a model of an ensemble takes part in, if they are not all. */
export function bandOf({ fromHertz, toHertz }: Omit<ModelChoice, 'model'>): Band | undefined {
  if (fromHertz === undefined && toHertz === undefined) return undefined
  return { from: fromHertz ?? 0, to: toHertz ?? Infinity }
}

function checkEnsemble(models: readonly ModelChoice[], ensemble: EnsembleAlgorithm): void {
  for (const { model: name, weight = 1 } of models)
    if (!(weight > 0 && weight < Infinity))
      throw invalid(`The weight of model ${name} is ${weight}; expected a positive number.`)
  const weighed = models.find(({ weight = 1 }) => weight !== (models[0]?.weight ?? 1))
  if (weighed && !ensemble.startsWith('avg_'))
    throw invalid(
      `The model ${weighed.model} has a weight, which ${ensemble} does not use. Omit the weights, or choose avg_wave.`,
    )
  const bands = models.map(bandOf)
  const limited = models.find((choice) => bandOf(choice) !== undefined)
  if (!limited) return
  if (!isSpectral(ensemble))
    throw invalid(
      `The model ${limited.model} is limited to a band, which ${ensemble} cannot do. Choose avg_fft, median_fft, ` +
        'min_fft or max_fft.',
    )
  for (const [index, band] of bands.entries()) {
    if (band && !(band.from >= 0 && band.from < band.to))
      throw invalid(
        `The band of model ${models[index]?.model} is ${band.from} to ${band.to} Hz; expected a lower and a higher ` +
          'frequency.',
      )
  }
  if (!coversAllFrequencies(bands))
    throw invalid(
      'There are frequencies that no model of the ensemble takes part in. Let its bands meet, from 0 Hz to the ' +
        'highest.',
    )
}

function isWholeNumber(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= most
}

function invalid(message: string): StemworkError {
  return invalidOptions(message)
}
