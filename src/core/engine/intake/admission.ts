import type { JobRecord } from '../job/job.js'
import { poolOf } from '../job/pool.js'
import type { Quota } from '../job/quota.js'
import { chargedSeconds } from '../limits/audio-charges.js'
import { effectiveLimits } from '../limits/limits.js'
import type { EngineOptions } from '../options.js'
import type { ApplicationStore } from '../ports/application-store.js'
import type { JobStore } from '../ports/job-store.js'
import type { StoreClock } from '../store-clock.js'
import type { SubmitInput } from './submission.js'
import { webhookTarget } from '../webhooks/webhook-target.js'
import type { WorkflowRegistry } from '../workflow/registry.js'
import { needsOf } from '../workflow/needs.js'

export interface AdmissionParts {
  applications: ApplicationStore
  jobs: JobStore
  clock: StoreClock
  workflows: WorkflowRegistry
  options: EngineOptions
}

/** What the store checks when jobs are added. */
export interface AdmissionLimits {
  maxQueued: number
  quota: Quota | undefined
}

/** What the application determines about its jobs at submission, in addition to what the client sends. */
export class Admission {
  readonly #parts: AdmissionParts

  constructor(parts: AdmissionParts) {
    this.#parts = parts
  }

  /**
   * @throws StemworkError `INVALID_PARAMS` for a webhook without a signing secret, and what the workflow's `needs`
   * throws.
   */
  async of(app: string): Promise<{
    limits: AdmissionLimits
    fieldsOf(input: SubmitInput): Pick<JobRecord, 'workflow' | 'alias' | 'webhook' | 'pool' | 'metered'>
  }> {
    const { applications, workflows, options } = this.#parts
    const application = await applications.getApplication(app)
    const { maxQueuedJobs = Infinity, ...figures } = effectiveLimits(application, options)
    const quota = Object.values(figures).every((limit) => limit === undefined) ? undefined : figures
    const { audioMinutes } = figures
    // The store counts what jobs used, and nothing else.
    const left = audioMinutes && {
      audioMinutes: Math.max(0, audioMinutes - (await chargedSeconds(app, this.#parts)) / 60),
    }
    return {
      limits: { maxQueued: maxQueuedJobs, quota: quota && { ...quota, ...left } },
      fieldsOf: (input) => {
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
}
