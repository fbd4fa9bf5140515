import type { KeptSegments } from '../pipeline/kept-segments.js'
import type { EncoderState } from '../../../media/encode/audio-encoder.js'
import type { StemName } from '../../../models/stems.js'

/** An incomplete file, up to the last block that was written. */
export interface GrowingFile extends EncoderState {
  stem: StemName
  path: string
}

/** Data that the attempts of a job keep of a track: either the estimates of the passes, or the files themselves. */
export interface TrackCheckpoint {
  pass(index: number): KeptSegments
  /**
   * Restores a kept file to `path` and its peaks, if it has any, to `peaksPath`, with the state of its encoder;
   * `undefined` if none was kept. Absent: no files are kept.
   */
  restore?(stem: StemName, path: string, peaksPath: string): Promise<EncoderState | undefined>
  /** Tells which files grow from now on. Must be called before the first segment. */
  follow?(files: () => readonly GrowingFile[]): void
  /** Removes data that was not kept. */
  close(): Promise<void>
}
