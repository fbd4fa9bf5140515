import type { JobEvents } from './events.js'
import type { JobRecord } from './job/job.js'
import type { JobStore } from './ports/job-store.js'
import type { Logger } from './ports/logger.js'

/** Long enough for a host that submits before it starts the engine. */
const patienceMs = 30_000

interface ReminderParts {
  events: JobEvents
  jobs: JobStore
  logger: Logger
}

/**
 * Warns once if the first job that was submitted to an engine still waits after 30 s, though only this process could run it. The
 * function that it returns calls that off, for the engine has started, or closes.
 */
export function remindToStart({ events, jobs, logger }: ReminderParts): () => void {
  if (jobs.traits.scope !== 'process') return () => {}
  let timer: NodeJS.Timeout | undefined
  const onCreated = ({ job }: { job: JobRecord }) => {
    events.off('job.created', onCreated)
    timer = setTimeout(() => void look(job.id), patienceMs).unref()
  }
  const look = async (id: string) => {
    // A store that does not answer is told of elsewhere.
    const job = await jobs.get(id).catch(() => undefined)
    if (job?.status !== 'QUEUED') return
    logger.warn(
      { jobId: id },
      'A job waits, nothing runs jobs in this process, and no other can reach its store: call engine.start(), or engine.run(id) for each job.',
    )
  }
  events.on('job.created', onCreated)
  return () => {
    events.off('job.created', onCreated)
    clearTimeout(timer)
  }
}
