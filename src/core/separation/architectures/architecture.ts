import type { Segment, SegmentGeometry } from '../dsp/segment.js'
import type { Tensor, TensorInfo } from '../runtime/network.js'
import type { Estimate, StemName } from '../stems.js'

/** One run of a network: tensors to read and tensors to fill. All of them are lent and come back from `Network.run`. */
export interface NetworkRun {
  /** Index into the networks of the model. */
  network: number
  feeds: Record<string, Tensor>
  fetches: Record<string, Tensor>
}

/** Statistics of the mono mix of the whole track, for architectures that normalise by them. */
export interface TrackStatistics {
  mean: number
  standardDeviation: number
}

/** What a caller may ask of an architecture. */
export interface ArchitectureOptions {
  /** Stems to estimate, of those that the model has. Default: all of them. */
  stems?: readonly StemName[]
  /** Share of a segment that the next one covers as well, 0 to 0.9. Default: the architecture's own. */
  overlap?: number
  /** Architecture `mdx`: half the difference of the network's answers to the mixture and to its negative; takes twice the time. */
  denoise?: boolean
}

/**
 * Turns segments of audio into the tensors that a model's networks want, and their output back into audio. Stereo throughout.
 *
 * `prepare` and `collect` are separate so that both can work on neighbouring segments while a network runs. They are called in
 * the order of the segments, `collect` with the runs that `prepare` made for the same segment.
 */
export interface Architecture {
  readonly sampleRate: number
  readonly geometry: SegmentGeometry
  /** Stems that it estimates; of two complementary stems one is enough. */
  readonly stems: readonly StemName[]
  readonly needsTrackStatistics: boolean
  /** Axis along which the tensors of several segments can be joined into one run; absent: the networks take one at a time. */
  readonly batchAxis?: number
  prepare(segment: Segment, statistics?: TrackStatistics): NetworkRun[]
  collect(segment: Segment, runs: NetworkRun[], statistics?: TrackStatistics): Estimate
  /** Frees what the architecture holds outside the garbage collector's reach. */
  close(): void
}

/** Tensor names and shapes of a model's networks, in the order of the manifest's files. */
export interface NetworkShape {
  readonly inputs: readonly TensorInfo[]
  readonly outputs: readonly TensorInfo[]
}
