import { createEngine } from 'stemwork'
import { fsBlobs } from 'stemwork/fs'
import { createApplication, issueKey } from 'stemwork/http'
import { sqliteStores } from 'stemwork/sqlite'

// Jobs, keys and files survive a restart.
const { jobs, applications, close } = sqliteStores({ path: 'data/jobs.db' })

export const engine = createEngine({ jobs, applications, blobs: fsBlobs({ directory: 'data/blobs' }) })

/** Lets running jobs finish; queued ones wait for the next start. */
export async function closeEngine(): Promise<void> {
  await engine.close()
  close()
}

/** The key of the first application, on the first start only: afterwards, only its hash is stored. */
export async function firstKey(): Promise<string | undefined> {
  if ((await applications.listApplications()).length > 0) return undefined
  const { id } = await createApplication(applications, { name: 'first' })
  return (await issueKey(applications, id)).key
}
