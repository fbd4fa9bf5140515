import type { Choices, Refusals } from '../options/choices.js'
import type { Explanation } from '../words/first-words.js'
import type { Client } from '../service/page-client.js'

export interface Upload {
  number: number
  file: File
  /** Options of its job, read when the job is made. */
  choices: Choices
  /** Whether the choices were made for this file, so that those for the next songs do not apply. */
  isOwn: boolean
  /** Whether the job repeats an earlier one, whatever is chosen. */
  isAgain: boolean
  /** Whether the person is still choosing, and will send it then. */
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

/** The part of the page that the uploads need. */
export interface UploadsPage extends UploadListener {
  client: Client
  choices: Choices
  changed(): void
}
