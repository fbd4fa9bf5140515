import { ClientError, type Job, type NewJob } from '../../client/client.js'
import type { Client } from '../service/page-client.js'

export type SentAgain =
  | { kind: 'created'; id: string }
  /** The service has removed the uploaded file, as it does when a job ends. */
  | { kind: 'file-needed'; job: NewJob }

/** Creates a job like an earlier one, from the same input if the service can still reach it. */
export async function sendAgain(client: Client, job: Job): Promise<SentAgain> {
  const again: NewJob = {
    workflow: job.workflow.id,
    name: job.name,
    batchName: job.batchName,
    metadata: job.metadata,
    params: job.workflowParams,
  }
  try {
    return { kind: 'created', id: (await client.createJob(again)).id }
  } catch (error) {
    if (ClientError.is(error) && error.code === 'UPLOAD_REFUSED') return { kind: 'file-needed', job: again }
    throw error
  }
}

/** Asks for one audio file; undefined if the person changes their mind. Call it from a click. */
export function chooseFile(): Promise<File | undefined> {
  const input = document.createElement('input')
  input.type = 'file'
  input.accept = 'audio/*,video/*'
  input.hidden = true
  document.body.append(input)
  return new Promise<File | undefined>((resolve) => {
    input.addEventListener('change', () => resolve(input.files?.[0]))
    input.addEventListener('cancel', () => resolve(undefined))
    input.click()
  }).finally(() => input.remove())
}
