import { StemworkError } from '../errors.js'
import type { JobRecord } from '../job/job.js'
import { poolOf } from '../job/pool.js'
import type { Quota } from '../job/quota.js'
import { chargedSeconds } from '../limits/audio-charges.js'
import { effectiveLimits } from '../limits/limits.js'
import type { Application } from '../ports/application-store.js'
import type { SubmitInput } from './submission.js'
import { signingSecrets } from '../webhooks/signing-secrets.js'
import { needsOf } from '../workflow/workflow.js'
import type { SharedParts } from '../engine-parts.js'

export type AdmissionParts = Pick<SharedParts, 'applications' | 'jobs' | 'clock' | 'workflows' | 'options'>

/** Limits that the store enforces when jobs are added. */
export interface AdmissionLimits {
  maxQueued: number
  quota: Quota | undefined
}

/**
 * Limits and fields of a submitted job that depend on the application and workflow rather than on the client.
 *
 * @throws StemworkError `INVALID_PARAMS` for a webhook without a signing secret; errors of `needs`
 */
export async function admissionOf(
  app: string,
  parts: AdmissionParts,
): Promise<{
  limits: AdmissionLimits
  fieldsOf(input: SubmitInput): Pick<JobRecord, 'workflow' | 'alias' | 'webhook' | 'pool' | 'metered'>
}> {
  const { applications, workflows, options } = parts
  const application = await applications.getApplication(app)
  const { maxQueuedJobs = Infinity, ...figures } = effectiveLimits(application, options)
  const quota = Object.values(figures).every((limit) => limit === undefined) ? undefined : figures
  const { audioMinutes } = figures
  // The store counts only usage by jobs, so seconds charged otherwise are subtracted here.
  const left = audioMinutes && { audioMinutes: Math.max(0, audioMinutes - (await chargedSeconds(app, parts)) / 60) }
  return {
    limits: { maxQueued: maxQueuedJobs, quota: quota && { ...quota, ...left } },
    fieldsOf(input) {
      const workflow = workflows.require(input.workflow)
      const params = workflow.params.parse(input.params ?? {}) as Record<string, unknown>
      return {
        workflow: workflow.id,
        alias: input.workflow === workflow.id ? null : input.workflow,
        webhook: webhookTarget(input, application, options.webhooks.secret),
        pool: poolOf(needsOf(workflow, params)),
        metered: quota !== undefined,
      }
    },
  }
}

/**
 * The receiver of a job's events, fixed at the submit: the job's own webhook, otherwise its application's.
 *
 * @param serviceSecret the secret from which the secrets of applications without their own are derived
 * @throws StemworkError `INVALID_PARAMS` if there is no secret to sign the messages
 */
function webhookTarget(
  { app, webhook }: { app: string; webhook?: { url: string; events?: string[] | null } | null },
  application: Application | undefined,
  serviceSecret: string | undefined,
): JobRecord['webhook'] {
  const target = webhook ?? application?.webhook
  if (!target) return null
  if (signingSecrets(app, application, serviceSecret, Date.now()).length > 0)
    return { url: target.url, events: target.events ?? null }
  throw new StemworkError(
    'INVALID_PARAMS',
    'A webhook needs a signing secret, and this application has none. Ask the operator to set one.',
    { details: { issues: [{ path: 'webhook', message: 'the application has no webhook secret' }] } },
  )
}
