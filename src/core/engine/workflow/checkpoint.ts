import type { KeptPart } from '../ports/runner.js'

export type { KeptPart } from '../ports/runner.js'

/**
 * Work that a stage keeps for the next attempt of its job, in parts: files whose content only the stage understands. A
 * kept part never changes; the next attempt, on any worker, gets all parts and continues after the last one. A full
 * disk or an unavailable blob store costs the checkpoint, never the job.
 */
export interface Checkpoint {
  /** Parts that earlier attempts kept, in order, as local files to read. They are removed after the run. */
  readonly parts: readonly KeptPart[]
  /** Whether parts can be kept at all. Once false, it stays false. */
  readonly isOn: boolean
  /** Whether it is time to keep the work since the last part. Check it often: after each unit of work. */
  isDue(): boolean
  /**
   * Keeps a file in the run's folder as the next part. Resolves when the file is no longer at `path`.
   *
   * @throws StemworkError `INTERNAL_ERROR` for a file elsewhere, which is left untouched.
   */
  keep(path: string): Promise<void>
  /** Stops keeping parts, for example because the disk is full. */
  stop(): void
  /** Discards parts that do not fit the work: the next kept part is the first. */
  restart(): void
}
