import type { Job, NewJob } from '../client/client.js'
import type { Client } from './page-client.js'
import type { Deletions } from './deletions.js'
import { useMessages } from './messages.js'
import { chooseFile, sendAgain } from './send-again.js'
import type { Uploads } from './uploads.js'
import { explain } from './words.js'

export type NamedJob = Pick<Job, 'id' | 'name'>

/** What a person can do with jobs, one or many. What goes wrong is said by the message board. */
export interface JobCommands {
  stop(jobs: readonly NamedJob[]): Promise<void>
  remove(jobs: readonly NamedJob[]): void
  /** Resolves with the ids of the new jobs; files that have to be chosen again go the way of uploads. */
  again(jobs: readonly NamedJob[]): Promise<string[]>
  /** Saves the results as one ZIP file. */
  archive(jobs: readonly NamedJob[]): Promise<void>
}

export function useJobCommands(client: Client, uploads: Uploads, deletions: Deletions): JobCommands {
  const { show } = useMessages()
  const guarded = async (action: () => Promise<void>) => {
    try {
      await action()
    } catch (error) {
      show({ text: explain(error).text })
    }
  }
  // A button of its own: browsers open the dialogue only right after a press.
  const askForFile = (job: Job, again: NewJob) =>
    show({
      text: `The service no longer has the file of ${job.name ?? 'this song'}.`,
      isLasting: true,
      action: {
        label: 'Choose file',
        run: () => void chooseFile().then((file) => file && uploads.addLike(file, again)),
      },
    })
  return {
    stop: (jobs) =>
      guarded(async () => {
        // One that is gone keeps none of the others running.
        const answers = await Promise.allSettled(jobs.map(({ id }) => client.cancelJob(id)))
        const failed = answers.find((answer) => answer.status === 'rejected')
        if (failed) throw failed.reason
      }),
    remove: (jobs) => deletions.remove(jobs),
    async again(jobs) {
      const ids: string[] = []
      await guarded(async () => {
        for (const { id } of jobs) {
          const job = await client.getJob(id)
          const sent = await sendAgain(client, job)
          if (sent.kind === 'created') {
            ids.push(sent.id)
            continue
          }
          const file = uploads.fileOf(job.id)
          if (file) uploads.addLike(file, sent.job)
          else askForFile(job, sent.job)
        }
        if (ids.length > 0) show({ text: ids.length === 1 ? 'Sent again.' : `Sent ${ids.length} songs again.` })
      })
      return ids
    },
    archive: (jobs) =>
      guarded(async () => {
        const { url } = await client.archive({ jobs: jobs.map(({ id }) => id) })
        saveLink(url)
      }),
  }
}

/** Leaves the download to the browser, which streams it to the disk. */
export function saveLink(url: string, fileName = ''): void {
  const link = document.createElement('a')
  link.href = url
  link.download = fileName
  link.click()
}
