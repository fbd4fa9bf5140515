import type { repeatJobs, saveArchive, stopJobs } from './job-requests.js'
import type { UploadQueue } from '../uploads/upload-queue.js'
import type { explain } from '../words/words.js'

/** The parts of `later.ts` that are used besides its components. */
export interface LaterParts {
  explain: typeof explain
  repeatJobs: typeof repeatJobs
  saveArchive: typeof saveArchive
  stopJobs: typeof stopJobs
  UploadQueue: typeof UploadQueue
}

/** Set by the page: the later script imports much of the first one, which must not import it in turn. */
export const later: { load(): Promise<LaterParts> } = {
  load: () => Promise.reject(new Error('Nothing is loaded later.')),
}
