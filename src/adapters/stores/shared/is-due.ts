import { isAbandoned, lapsesAt, overdueAt, removableAt } from '../../../core/engine/job/due-times.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import type { DueReason } from '../../../core/engine/ports/job-store.js'

export function isDue(reason: DueReason, job: JobRecord, now: number): boolean {
  const reached = (time: number | null) => time !== null && time <= now
  switch (reason) {
    case 'lapsed':
      return reached(lapsesAt(job))
    case 'abandoned':
      return isAbandoned(job, now)
    case 'expired':
      return reached(removableAt(job))
    case 'overdue':
      return reached(overdueAt(job))
    case 'deleted':
      return job.deleted
    default:
      return reason satisfies never
  }
}
