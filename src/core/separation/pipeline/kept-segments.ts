import type { FinishedAudio, OverlapAddState } from './overlap-add.js'

/**
 * Finished segments of one pass over a track, as earlier runs kept them. They are read in order; the pass goes on behind the last one, from
 * the state in which the overlap-add was then, and gives the same samples in the same blocks as a run from the start.
 */
export interface KeptSegments {
  /** Segments that need not be estimated any more: those before this index. */
  readonly count: number
  /** The samples that this segment finished. Its index is below `count`. Absent: the consumer has them already, and the pass begins behind. */
  read?(segment: number): Promise<FinishedAudio>
  /** State behind the last kept segment; `undefined` if there is none. */
  readonly state: OverlapAddState | undefined
  /** Notes what a segment has finished. The samples are not used after the promise has resolved. */
  note?(segment: number, finished: FinishedAudio): Promise<void>
  /** To be called behind the last segment of a batch, for a later run can go on there only. `state` may be asked until the next `note`. */
  keepIfDue?(state: () => OverlapAddState): Promise<void>
  /** To be called when the consumer has taken all blocks up to this segment. `state` as above. */
  consumed?(segment: number, state: () => OverlapAddState): Promise<void>
}
