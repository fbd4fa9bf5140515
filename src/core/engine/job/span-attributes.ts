import type { JobRecord } from './job.js'

/** Attributes of a job's spans, by OpenTelemetry's conventions for messaging. */
export function jobAttributes(job: Pick<JobRecord, 'id' | 'app' | 'workflow'>): Record<string, string> {
  return {
    'messaging.system': 'stemwork',
    'messaging.destination.name': job.workflow,
    'messaging.message.id': job.id,
    'stemwork.app': job.app,
  }
}
