import type { Manifest } from '../../../models/manifest.js'
import type { Segment, SegmentGeometry } from '../../../media/dsp/segment.js'
import type { Tensor, TensorInfo } from '../../../models/session/network.js'
import type { Estimate, StemName } from '../../../models/stems.js'

/**
 * One run of a network: tensors to read and tensors to fill. All of them are lent to the network and returned by
 * `Network.run`.
 */
export interface NetworkRun {
  /** Index into the networks of the model. */
  network: number
  feeds: Record<string, Tensor>
  fetches: Record<string, Tensor>
}

/** Statistics of the mono mix of the whole track, for architectures that normalize with them. */
export interface TrackStatistics {
  mean: number
  standardDeviation: number
}

/** Options that a caller may pass to an architecture. */
export interface ArchitectureOptions {
  /** Stems to estimate, out of those the model has. Default: all of them. */
  stems?: readonly StemName[]
  /**
   * Fraction by which neighbouring segments overlap, 0 to 0.9: more is slower and smoother. Default: the architecture's
   * own.
   */
  overlap?: number
  /**
   * `mdx` only: takes half the difference between the outputs for the mixture and for its negative. Doubles the run
   * time.
   */
  denoise?: boolean
}

/**
 * Turns segments of audio into the input tensors of a model's networks, and their output back into audio. Stereo
 * throughout.
 *
 * `prepare` and `collect` are separate so that both can process neighbouring segments while a network runs. They are
 * called in segment order; `collect` gets the runs that `prepare` returned for the same segment.
 */
export interface Architecture {
  readonly sampleRate: number
  readonly geometry: SegmentGeometry
  /** Stems that it estimates. One of two complementary stems is enough. */
  readonly stems: readonly StemName[]
  readonly needsTrackStatistics?: true
  /** Axis along which the tensors of several segments can be joined into one run. Absent: one segment per run. */
  readonly batchAxis?: number
  prepare(segment: Segment, statistics?: TrackStatistics): NetworkRun[]
  collect(segment: Segment, runs: NetworkRun[], statistics?: TrackStatistics): Estimate
  /** Frees memory that the garbage collector does not manage. */
  close(): void
}

/** Tensor names and shapes of a model's networks, in the order of the manifest's files. */
export interface NetworkShape {
  readonly inputs: readonly TensorInfo[]
  readonly outputs: readonly TensorInfo[]
}

export type ArchitectureFactory = (
  manifest: Manifest,
  networks: readonly NetworkShape[],
  options: ArchitectureOptions,
) => Promise<Architecture>
