import type { Choices, Refusals } from './choices.js'
import type { Explanation } from './first-words.js'
import type { Client } from './page-client.js'

export interface Upload {
  number: number
  file: File
  /** What its job will be: they are read when the job is made. */
  choices: Choices
  /** They were chosen for this file, so what is chosen for the next songs is not for it. */
  isOwn: boolean
  /** Its job is like an earlier one, whatever is chosen. */
  isAgain: boolean
  /** The person chooses, and sends it then. */
  isHeld: boolean
  /** `refused`: the page thinks that the service would not take it. */
  state: 'waiting' | 'sending' | 'disconnected' | 'refused' | 'failed'
  /** 0..1 */
  progress: number
  problem?: Explanation
  refusals?: Refusals
}

export interface UploadListener {
  onCreated(jobId: string, file: File): void
  onRefused(file: File, problem: Explanation): void
  /** The service does not take the settings of the workflow. */
  onParamsRefused(workflow: string, refusals: Refusals): void
}

/** What the uploads know of the page. */
export interface UploadsPage extends UploadListener {
  client: Client
  choices: Choices
  changed(): void
}
