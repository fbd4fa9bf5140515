import type { JobEvents } from '../events.js'
import type { JobRecord } from '../job/job.js'
import type { JobStore } from '../ports/job-store.js'
import type { Logger } from '../ports/logger.js'

/** Long enough for a host that submits before it starts the engine. */
const patienceMs = 30_000

interface ReminderParts {
  events: JobEvents
  jobs: JobStore
  logger: Logger
}

/**
 * Warns once if the first submitted job still waits after 30 s although only this process could run it. Call the
 * returned function when the engine starts or closes: it cancels the warning.
 */
export function remindToStart({ events, jobs, logger }: ReminderParts): () => void {
  if (jobs.traits.scope !== 'process') return () => {}
  let timer: NodeJS.Timeout | undefined
  const onCreated = ({ job }: { job: JobRecord }) => {
    events.off('job.created', onCreated)
    timer = setTimeout(() => void look(job.id), patienceMs).unref()
  }
  const look = async (id: string) => {
    // Other checks report a store that does not respond.
    const job = await jobs.get(id).catch(() => undefined)
    if (job?.status !== 'QUEUED') return
    logger.warn(
      { jobId: id },
      'A job is waiting, but this process does not run jobs and no other process can reach its store. Call ' +
        'engine.start(), or engine.run(id) for each job.',
    )
  }
  events.on('job.created', onCreated)
  return () => {
    events.off('job.created', onCreated)
    clearTimeout(timer)
  }
}
