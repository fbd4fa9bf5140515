import type { JobEngine } from '../../core/engine/engine.js'
import type { StepRecord } from '../../core/engine/job/step.js'
import type { Logger } from '../../core/engine/ports/logger.js'

/** Logs the events of this process's jobs and of their steps. */
export function logJobs(engine: JobEngine, logger: Logger): void {
  engine.on('job.started', ({ job: { id, workflow, attempts, lapses } }) =>
    logger.info({ jobId: id, attempt: attempts, ...(lapses > 0 ? { lapses } : {}), workflow }, 'job started'),
  )
  logSteps(engine, logger)
  engine.on('job.succeeded', ({ job }) =>
    logger.info({ jobId: job.id, seconds: ((job.completedAt ?? 0) - (job.startedAt ?? 0)) / 1000 }, 'job succeeded'),
  )
  engine.on('job.failed', ({ job }) =>
    logger.info({ jobId: job.id, code: job.error?.code, reason: job.error?.reason }, 'job failed'),
  )
}

function logSteps(engine: JobEngine, logger: Logger): void {
  const logged = new Map<string, Set<string>>()
  engine.on('job.started', ({ job }) => logged.set(job.id, new Set(job.steps.map(tryOf))))
  engine.on('job.progressed', ({ job: { id, steps } }) => {
    const known = logged.get(id)
    for (const step of steps) {
      if (!known || step.state === 'waiting' || known.has(tryOf(step))) continue
      known.add(tryOf(step))
      const { name, state, startedAt, endedAt, error } = step
      const seconds = ((endedAt ?? startedAt) - startedAt) / 1000
      logger.info({ jobId: id, step: name, seconds, ...(error ? { code: error.code } : {}) }, `step ${state}`)
    }
  })
  for (const name of ['job.requeued', 'job.succeeded', 'job.failed'] as const)
    engine.on(name, ({ job }) => logged.delete(job.id))
}

function tryOf({ name, state, attempts }: StepRecord): string {
  return `${name} ${state} ${attempts}`
}
