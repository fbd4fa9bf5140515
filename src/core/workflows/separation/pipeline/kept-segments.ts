import type { FinishedAudio, OverlapAddState } from './overlap-add.js'

/**
 * Finished segments of one pass over a track, as earlier runs kept them. They are read in order; the pass resumes after
 * the last one, from the state that the overlap-add had then, and gives the same samples in the same blocks as a run
 * from the start.
 */
export interface KeptSegments {
  /** Segments that no longer need estimating: those before this index. */
  readonly count: number
  /**
   * Returns the samples that this segment finished. Its index is below `count`. Absent: the consumer already has them,
   * and the pass begins later.
   */
  read?(segment: number): Promise<FinishedAudio>
  /** State after the last kept segment; `undefined` if there is none. */
  readonly state: OverlapAddState | undefined
  /** Notes the samples that a segment finished. They are not used after the promise has resolved. */
  note?(segment: number, finished: FinishedAudio): Promise<void>
  /**
   * Must be called after the last segment of a batch, because a later run can resume only there. `state` may be called
   * until the next `note`.
   */
  keepIfDue?(state: () => OverlapAddState): Promise<void>
  /** Must be called when the consumer has taken all blocks up to this segment. `state` as above. */
  consumed?(segment: number, state: () => OverlapAddState): Promise<void>
}
