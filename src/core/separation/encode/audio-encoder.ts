/** Writes an audio file as audio arrives. */
export interface AudioEncoder {
  /** Appends one plane per channel, all of the same length, nominal range -1..1. The arrays may be reused afterwards. */
  write(planes: readonly Float32Array[]): Promise<void>
  /** Completes and closes the file. */
  close(): Promise<{ sampleCount: number; clippedSamples: number; bytes: number }>
  /** Closes the file without completing it; the caller removes it. */
  abandon(): Promise<void>
}
