import { StemworkError } from '../../engine/errors.js'
import type { Checkpoint } from '../../engine/workflow/checkpoint.js'
import type { Decoders } from '../decode/open-audio.js'
import type { OutputFormat } from '../encode/output-format.js'
import type { StemName } from '../stems.js'
import type { AudioTags } from '../tags/audio-tags.js'
import type { ExecutionProvider } from '../runtime/execution-provider.js'

export interface SeparationProgress {
  /** 0..1, never decreasing; 1 only when all files are complete. */
  progress: number
  /** Estimated time left; absent until there is a basis for an estimate. */
  etaSeconds?: number
  /** Finished samples per channel, at the output's sample rate. */
  samplesDone: number
}

/** One model of an ensemble. */
export interface ModelChoice {
  /** Name of the model, or the path of its manifest or folder. */
  model: string
  /** Relative weight in the mean. Default: 1. */
  weight?: number
}

export interface SeparationOptions {
  /** Paths of the files to write, by stem. */
  outputs: Partial<Record<StemName, string>>
  /**
   * Name of a model, or the path of its manifest or folder (`model.json` and its ONNX files). With several models, each stem is
   * the weighted mean of their estimates, and the accompaniments are the rest of the mixture. Default: the bundled model.
   */
  model?: string | readonly ModelChoice[]
  /** Tags to write into the files. Default: none. */
  tags?: (stem: StemName) => AudioTags
  /** Format of the files. Default: `'16'`, 16-bit WAV. */
  format?: OutputFormat
  /** Threads for the network. Default: the number of processors minus one. */
  threads?: number
  /** What should run the networks; if it is not available, the CPU does, and the result says so. Default: `cpu`. */
  provider?: ExecutionProvider
  /** While this process uses more memory than this, networks of earlier calls are closed. Default: 2 GiB. */
  maxWarmBytes?: number
  /** Fraction by which neighbouring segments overlap, 0 to 0.9: more is slower and smoother. Default: the architecture's own. */
  overlap?: number
  /** Number of passes to average, with segments shifted by up to half a second; 1 to 20. Default: 1. */
  shifts?: number
  /** Segments per network run, 1 to 64, if the network supports batches: for GPUs. Default: 1. */
  batch?: number
  /** Architecture `mdx`: averages the outputs for the mixture and for its negative; takes twice the time. Default: false. */
  denoise?: boolean
  /** Takes the accompaniments from the model, if it has them, instead of subtracting the vocals from the mixture. Default: false. */
  ownAccompaniments?: boolean
  /** Programs that may decode what the package cannot. Default: none. */
  decoders?: Decoders
  /** Rejects longer audio with `BAD_INPUT`, reason `too_long`. */
  maxSeconds?: number
  /** Where finished segments are kept, for a later run of the same job. Default: nowhere. */
  checkpoint?: Checkpoint
  /** Checked between segments, that is, within a second or two. */
  signal?: AbortSignal
  onProgress?(progress: SeparationProgress): void
}

/** @throws StemworkError `INVALID_OPTIONS` naming the option that is wrong */
export function checkOptions({ outputs, model, overlap = 0, shifts = 1, batch = 1 }: SeparationOptions): void {
  if (!(overlap >= 0 && overlap <= 0.9)) throw invalid(`overlap is ${overlap}; expected a number from 0 to 0.9.`)
  if (!isWholeNumber(shifts, 20)) throw invalid(`shifts is ${shifts}; expected a whole number from 1 to 20.`)
  if (!isWholeNumber(batch, 64)) throw invalid(`batch is ${batch}; expected a whole number from 1 to 64.`)
  if (Object.keys(outputs).length === 0) throw invalid('outputs is empty. Name at least one stem to write.')
  if (model === undefined || typeof model === 'string') return
  if (model.length === 0) throw invalid('model is an empty list. Name at least one model.')
  for (const { model: name, weight = 1 } of model) {
    if (!(weight > 0 && weight < Infinity)) {
      throw invalid(`The weight of model ${name} is ${weight}; expected a positive number.`)
    }
  }
}

function isWholeNumber(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= most
}

function invalid(message: string): StemworkError {
  return new StemworkError('INVALID_OPTIONS', message)
}
