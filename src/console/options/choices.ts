import type { Settings } from './param-fields.js'

export const stemsWorkflowId = 'service/stems-vocals-accompaniment'

/** A person's choices for a song. */
export interface Choices {
  workflow: string
  batchName?: string
  /** For several files: each waits until the person has made choices for it. */
  isEach?: boolean
  /** By workflow, so that each keeps its own when a person returns to it. */
  settings: Record<string, Settings | undefined>
}

/** Why the service refused params, by their names. */
export type Refusals = Record<string, string | undefined>
