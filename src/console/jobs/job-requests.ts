import type { Job, NewJob } from '../../client/client.js'
import type { Messages } from '../elements/messages.js'
import type { Client } from '../service/page-client.js'
import { chooseFile, sendAgain } from './send-again.js'
import type { Uploads } from '../uploads/upload-queue.js'

type NamedJob = Pick<Job, 'id' | 'name'>

/** Cancels the jobs, then throws the first error if there was one. */
export async function stopJobs(client: Client, jobs: readonly NamedJob[]): Promise<void> {
  // A job that is gone must not keep the others running.
  const answers = await Promise.allSettled(jobs.map(({ id }) => client.cancelJob(id)))
  const failed = answers.find((answer) => answer.status === 'rejected')
  if (failed) throw failed.reason
}

/** @param created called with the ids of the new jobs */
export async function repeatJobs(
  client: Client,
  jobs: readonly NamedJob[],
  { uploads, show, created }: { uploads: Uploads; show: Messages['show']; created(id: string): void },
): Promise<void> {
  // By a button of the message, because browsers open the file dialog only right after a press.
  const askForFile = (job: Job, again: NewJob) =>
    show({
      text: `The service no longer has the file of ${job.name ?? 'this song'}.`,
      isLasting: true,
      action: {
        label: 'Choose file',
        run: () => void chooseFile().then((file) => file && uploads.with((queue) => queue.addLike(file, again))),
      },
    })
  let count = 0
  for (const { id } of jobs) {
    const job = await client.getJob(id)
    const sent = await sendAgain(client, job)
    if (sent.kind === 'created') {
      created(sent.id)
      count++
      continue
    }
    const file = uploads.made.get(job.id)?.file
    if (file) uploads.with((queue) => queue.addLike(file, sent.job))
    else askForFile(job, sent.job)
  }
  if (count > 0) show({ text: count === 1 ? 'Sent again.' : `Sent ${count} songs again.` })
}

export async function saveArchive(client: Client, jobs: readonly NamedJob[]): Promise<void> {
  const { url } = await client.archive({ jobs: jobs.map(({ id }) => id) })
  saveLink(url)
}

/** Leaves the download to the browser, which streams it to disk. */
export function saveLink(url: string, fileName = ''): void {
  const link = document.createElement('a')
  link.href = url
  link.download = fileName
  link.click()
}
