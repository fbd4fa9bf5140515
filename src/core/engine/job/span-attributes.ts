import type { JobRecord } from './job.js'

/** What the spans of a job tell of it, by OpenTelemetry's conventions for messages. */
export function jobAttributes(job: Pick<JobRecord, 'id' | 'app' | 'workflow'>): Record<string, string> {
  return {
    'messaging.system': 'stemwork',
    'messaging.destination.name': job.workflow,
    'messaging.message.id': job.id,
    'stemwork.app': job.app,
  }
}
