import type { JobEngine } from '../core/engine/engine.js'
import type { Logger } from '../core/engine/ports/logger.js'

/** Logs what becomes of the jobs of this process. */
export function logJobs(engine: JobEngine, logger: Logger): void {
  engine.on('job.started', ({ job: { id, attempts, lapses } }) =>
    logger.info({ jobId: id, attempt: attempts, ...(lapses > 0 ? { lapses } : {}) }, 'job started'),
  )
  engine.on('job.succeeded', ({ job }) =>
    logger.info({ jobId: job.id, seconds: ((job.completedAt ?? 0) - (job.startedAt ?? 0)) / 1000 }, 'job succeeded'),
  )
  engine.on('job.failed', ({ job }) =>
    logger.info({ jobId: job.id, code: job.error?.code, reason: job.error?.reason }, 'job failed'),
  )
}
