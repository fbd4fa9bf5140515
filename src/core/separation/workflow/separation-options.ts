import { StemworkError } from '../../engine/errors.js'
import type { OutputFormat } from '../encode/output-format.js'
import type { StemName } from '../stems.js'
import type { ExecutionProvider } from '../runtime/execution-provider.js'

export interface SeparationProgress {
  /** 0..1, never falling; 1 only once all files are complete. */
  progress: number
  /** Estimate of the time left, absent until there is something to estimate it from. */
  etaSeconds?: number
  /** Finished frames at the output's sample rate. */
  samplesDone: number
}

/** One model of an ensemble. */
export interface ModelChoice {
  /** Name of the model, or the path of its manifest or folder. */
  model: string
  /** Share in the mean, relative to the other models'. Default: 1. */
  weight?: number
}

export interface SeparationOptions {
  /** Paths of the files to write, by stem. */
  outputs: Partial<Record<StemName, string>>
  /**
   * Name of a model, or the path of its manifest or folder (`model.json` and its ONNX files); or several: then each stem is the weighted mean of their estimates,
   * and the accompaniments are what is left of the mixture. Default: the model that comes with the package.
   */
  model?: string | readonly ModelChoice[]
  /** Format of the files. Default: `'16'`, WAV with integers of 16 bits. */
  format?: OutputFormat
  /** Threads of the network. Default: one less than there are processors. */
  threads?: number
  /** What should run the networks; where that cannot be had, the processor does, and the result says so. Default: `cpu`. */
  provider?: ExecutionProvider
  /** While this process takes more memory than that, networks of earlier calls are closed. Default: 2 GiB. */
  maxWarmBytes?: number
  /** Share of a segment that the next one covers, too, 0 to 0.9: more is slower and smoother. Default: the architecture's own. */
  overlap?: number
  /** Averages over so many passes whose segments are shifted against each other, by up to half a second; 1 to 20. Default: 1. */
  shifts?: number
  /** Segments that go through the network in one run, 1 to 64, where it allows that: for GPUs. Default: 1. */
  batch?: number
  /** Architecture `mdx`: averages the answers to the mixture and to its negative; takes twice the time. Default: false. */
  denoise?: boolean
  /** Takes the accompaniments from the model, if it has them, instead of the mixture without the vocals. Default: false. */
  ownAccompaniments?: boolean
  /** Refuses longer audio with `BAD_INPUT`, reason `too_long`. */
  maxSeconds?: number
  /** Seen between two segments, that is within about a second or two. */
  signal?: AbortSignal
  onProgress?(progress: SeparationProgress): void
}

/** @throws StemworkError `INVALID_OPTIONS` naming the option that is wrong */
export function checkOptions({ outputs, model, overlap = 0, shifts = 1, batch = 1 }: SeparationOptions): void {
  if (!(overlap >= 0 && overlap <= 0.9)) throw invalid(`overlap is ${overlap}; expected a number from 0 to 0.9.`)
  if (!isWholeNumber(shifts, 20)) throw invalid(`shifts is ${shifts}; expected a whole number from 1 to 20.`)
  if (!isWholeNumber(batch, 64)) throw invalid(`batch is ${batch}; expected a whole number from 1 to 64.`)
  if (Object.keys(outputs).length === 0) throw invalid('There is no output. Name at least one stem to write.')
  if (model === undefined || typeof model === 'string') return
  if (model.length === 0) throw invalid('The ensemble has no model. Name at least one.')
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
