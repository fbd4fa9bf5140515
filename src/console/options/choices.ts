import type { Settings } from './param-fields.js'

export const stemsWorkflowId = 'service/stems-vocals-accompaniment'

/** What a person asks for beside the song. */
export interface Choices {
  workflow: string
  batchName?: string
  /** For several files: each waits until the person has chosen for it. */
  isEach?: boolean
  /** By workflow, so that each has its own when a person comes back to it. */
  settings: Record<string, Settings | undefined>
}

/** What the service said against params, by their names. */
export type Refusals = Record<string, string | undefined>
