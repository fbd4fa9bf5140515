export interface WrittenAudio {
  sampleCount: number
  /** Samples beyond the integer range that were clipped; 0 in formats without integers. */
  clippedSamples: number
  /** Size of the file. */
  bytes: number
}

/** Progress of an encoder. */
export interface EncoderState {
  /** Size of the file. */
  bytes: number
  clippedSamples: number
  /** Set by encoders that keep peaks beside the file (`openGrowingPeaks`). */
  peaks?: PeaksState
}

/** Peaks of the audio that an encoder has written so far. */
export interface PeaksState {
  path: string
  /** Size of the file at `path`. */
  bytes: number
  /** Samples after the last peak that is in the file, with their lowest and highest value; 0 if there are none. */
  samples: number
  lowest: number
  highest: number
}

/** Writes an audio file as audio arrives. Calls must not overlap. */
export interface AudioEncoder {
  /**
   * Appends one plane per channel, all of the same length, nominal range -1..1. The arrays may be reused afterwards.
   */
  write(planes: readonly Float32Array[]): Promise<void>
  /** The state from which another encoder can continue the file. Absent in encoders that cannot be resumed. */
  state?(): EncoderState
  /** Completes and closes the file. */
  close(): Promise<WrittenAudio>
  /** Closes the file without completing it; the caller removes it. */
  abandon(): Promise<void>
}
