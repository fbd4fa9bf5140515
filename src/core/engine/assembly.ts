import { hostname } from 'node:os'
import { Batches } from './batch/batches.js'
import { blobCheck, documentCheck } from './lifecycle/write-check.js'
import { Dispatcher } from './dispatch/dispatcher.js'
import { fileSweep } from './dispatch/sweep/file-sweep.js'
import { engineMaintenance } from './dispatch/maintenance.js'
import { jobSweep } from './dispatch/sweep/sweep.js'
import { sweepTurn } from './dispatch/sweep/sweep-turn.js'
import { Waking } from './dispatch/waking.js'
import { checkParts, type EngineParts } from './engine-parts.js'
import { Estimates } from './queries/estimate.js'
import { JobEvents } from './events.js'
import type { JobRecord } from './job/job.js'
import { jobEnds } from './dispatch/job-ends.js'
import { jobIntake } from './intake/job-intake.js'
import { Lifecycle } from './lifecycle/lifecycle.js'
import { deploymentLimits } from './limits/limits.js'
import { type EngineSettings, resolveEngineOptions } from './options.js'
import { resultPeaks } from './queries/result-peaks.js'
import { Readiness } from './runner/readiness.js'
import { rememberedRules } from './limits/scheduling-rules.js'
import { StoreContact } from './dispatch/store-contact.js'
import { StoreClock } from './store-clock.js'
import { messageSender } from './webhooks/message-sender.js'
import { webhookOutbox } from './webhooks/outbox.js'
import { WorkerRegistry } from './workers/worker-registry.js'
import { WorkflowRegistry } from './workflow/registry.js'
import type { Workflow } from './workflow/workflow.js'

export type EngineAssembly<Offered extends Workflow> = ReturnType<typeof assemble<Offered>>

/**
 * Builds the parts of an engine from the host's parts and settings. Starts nothing.
 *
 * @throws StemworkError `INVALID_OPTIONS`.
 */
export function assemble<Offered extends Workflow>(parts: EngineParts<Offered>, settings: EngineSettings) {
  checkParts(parts)
  const options = resolveEngineOptions(settings)
  const { logger } = options
  const workflows = new WorkflowRegistry(parts.workflows, options.aliases)
  const readiness = new Readiness({ runner: parts.runner, workflows: workflows.list(), logger })
  const clock = new StoreClock(parts.jobs)
  const basic = { ...parts, clock, events: new JobEvents(logger), options, logger }
  const shared = {
    ...basic,
    contact: new StoreContact({ jobs: parts.jobs, clock, ...options.dispatch }),
    sender: messageSender(basic),
    workflows,
    onEnd: (job: JobRecord) => ends.report(job),
    runnable: () => readiness.runnable(),
    onSetupError: () => readiness.forget(),
  }
  const owner = options.owner ?? `${hostname()}:${process.pid}`
  const { concurrency: slots, labels, leaseMs } = options.dispatch
  const workers = new WorkerRegistry({
    jobs: parts.jobs,
    self: () => ({ owner, workflows: readiness.runnable(), labels, slots }),
    running: () => dispatcher.running,
    onState: (state) => dispatcher.setState(state),
    beatMs: leaseMs,
    logger,
  })
  const waking = new Waking({ ...basic, workers })
  const dispatcher: Dispatcher = new Dispatcher({ ...shared, waking, address: workers.address }, owner)
  const tended = {
    ...shared,
    waking,
    dispatcher,
    takeSweepTurn: () => sweepTurn({ ...basic, workers, intervalMs: options.dispatch.sweepIntervalMs }),
    sweep: jobSweep(shared),
    fileSweep: fileSweep(shared),
    checks: { blobs: blobCheck({ blobs: parts.blobs }), documents: documentCheck(parts.jobs.documents) },
    outbox: webhookOutbox(shared),
    batches: new Batches(shared),
    rules: rememberedRules(parts.jobs),
    workers,
    readiness,
  }
  const maintained = { ...tended, maintenance: engineMaintenance(tended) }
  const lifecycle = new Lifecycle(maintained)
  const ends = jobEnds(maintained)
  const intake = jobIntake({
    ...maintained,
    deploymentLimits: deploymentLimits(shared),
    closing: lifecycle.closing,
  })
  return {
    ...maintained,
    lifecycle,
    ends,
    intake,
    estimates: new Estimates({ ...shared, workers }),
    peaks: resultPeaks(parts.blobs, parts.audioPeaks),
  }
}
