import type { Choices, Refusals } from '../options/choices.js'
import type { Explanation } from '../words/first-words.js'
import type { Client } from '../service/page-client.js'

export interface Upload {
  number: number
  file: File
  /** Options of its job, read when the job is made. */
  choices: Choices
  /** They were chosen for this file, so the choices for the next songs do not apply. */
  isOwn: boolean
  /** Its job is like an earlier one, whatever is chosen. */
  isAgain: boolean
  /** The person is still choosing, and will send it then. */
  isHeld: boolean
  /** `refused`: the page expects the service to refuse it. */
  state: 'waiting' | 'sending' | 'disconnected' | 'refused' | 'failed'
  /** 0..1 */
  progress: number
  problem?: Explanation
  refusals?: Refusals
}

export interface UploadListener {
  onCreated(jobId: string, file: File): void
  onRefused(file: File, problem: Explanation): void
  /** The service refused the settings of the workflow. */
  onParamsRefused(workflow: string, refusals: Refusals): void
}

/** What the uploads need of the page. */
export interface UploadsPage extends UploadListener {
  client: Client
  choices: Choices
  changed(): void
}
