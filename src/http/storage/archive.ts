import type { JobOutput, JobRecord } from '../../core/engine/job/job.js'
import type { HttpEngine } from '../http-engine.js'
import { downloadName, songName } from './download-name.js'
import type { ZipEntry } from './zip.js'

/** Jobs whose results one archive may hold. */
export const maxArchiveJobs = 100

/** The result files of jobs as they lie in an archive: of several jobs, in a folder for each. */
export function archiveEntries(jobs: readonly JobRecord[], blobs: HttpEngine['blobs']): ZipEntry[] {
  const folders = new Set<string>()
  return jobs.flatMap((job) => {
    const folder = jobs.length > 1 ? `${unused(songName(job.name), folders)}/` : ''
    return keptOutputs(job).map((output) => ({
      name: folder + downloadName(job, output),
      bytes: output.bytes,
      modifiedAt: new Date(job.completedAt ?? job.createdAt),
      async open() {
        const blob = await blobs.get(output.key, { app: job.app, reuseMemory: true })
        if (!blob) throw new Error(`The result file ${output.key} no longer exists.`)
        return blob.body
      },
    }))
  })
}

/** Outputs that this service still has. */
export function keptOutputs(job: JobRecord): JobOutput[] {
  if (job.status !== 'SUCCEEDED' || job.expired) return []
  return Object.values(job.outputs ?? {}).filter(({ copied }) => !copied)
}

/** Name of the archive as a person keeps it. */
export function archiveName(jobs: readonly JobRecord[]): string {
  const [first] = jobs
  if (jobs.length === 1 && first) return `${songName(first.name)} - stems.zip`
  const batch = first?.batchName
  const isBatch = batch && jobs.every(({ batchName }) => batchName === batch)
  return `${isBatch ? songName(batch) : `${jobs.length} songs`} - stems.zip`
}

/** `name`, or `name (2)` and so on if it is taken. */
function unused(name: string, taken: Set<string>): string {
  // For macOS and Windows, these are one name.
  const alike = (text: string) => text.normalize('NFC').toLowerCase()
  let free = name
  for (let number = 2; taken.has(alike(free)); number++) free = `${name} (${number})`
  taken.add(alike(free))
  return free
}
