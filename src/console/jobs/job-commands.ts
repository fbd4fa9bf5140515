import type { Job } from '../../client/client.js'
import type { Client } from '../service/page-client.js'
import type { Deletions } from './deletions.js'
import { explained } from './explained.js'
import { later, type LaterParts } from './later-parts.js'
import { useMessages } from '../elements/messages.js'
import type { Uploads } from '../uploads/upload-queue.js'

export type NamedJob = Pick<Job, 'id' | 'name'>

/** Actions on one or many jobs. The message board shows errors. */
export interface JobCommands {
  stop(jobs: readonly NamedJob[]): Promise<void>
  remove(jobs: readonly NamedJob[]): void
  /** Resolves with the ids of the new jobs; files that have to be chosen again are uploaded as usual. */
  again(jobs: readonly NamedJob[]): Promise<string[]>
  /** Saves the results as one ZIP file. */
  archive(jobs: readonly NamedJob[]): Promise<void>
}

export function useJobCommands(client: Client, uploads: Uploads, deletions: Deletions): JobCommands {
  const { show } = useMessages()
  const attempt = async (act: (requests: LaterParts) => Promise<void>) => {
    try {
      await act(await later.load())
    } catch (error) {
      show({ text: (await explained(error)).text })
    }
  }
  return {
    stop: (jobs) => attempt(({ stopJobs }) => stopJobs(client, jobs)),
    remove: (jobs) => deletions.remove(jobs),
    async again(jobs) {
      const ids: string[] = []
      await attempt(({ repeatJobs }) => repeatJobs(client, jobs, { uploads, show, created: (id) => void ids.push(id) }))
      return ids
    },
    archive: (jobs) => attempt(({ saveArchive }) => saveArchive(client, jobs)),
  }
}
