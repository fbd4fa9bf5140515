import type { KeptPart } from '../ports/runner.js'

export type { KeptPart } from '../ports/runner.js'

/**
 * What a stage keeps for the next attempt of its job, in parts: files whose content is the stage's own affair. A part that is kept is never
 * changed; the next attempt gets all of them, on whatever worker, and goes on where the last one ends. Nothing here throws: a disk that is
 * full or a blob store that is away costs the checkpoint, never the job.
 */
export interface Checkpoint {
  /** What earlier attempts kept, in the order of keeping: local files to read. They are gone after the run. */
  readonly parts: readonly KeptPart[]
  /** Whether a part can be kept at all. It does not become true again. */
  readonly isOn: boolean
  /** Whether it is time to keep the work since the last part. To be asked often: after each unit of work. */
  isDue(): boolean
  /** Takes the file, which lies in the run's folder, as the next part. Resolves when there is no file at `path` any more. */
  keep(path: string): Promise<void>
  /** Ends keeping, for example because the disk is full. */
  stop(): void
  /** Parts that do not fit the work are forgotten: what is kept next is the first part. */
  restart(): void
}
