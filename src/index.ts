export { type CreateEngineOptions, createEngine } from './create-engine.js'
export { type EngineHealth, type EngineParts, JobEngine, type JobScope, type SubmitInput } from './core/engine.js'
export type { EngineEventName, EngineEvents } from './core/events.js'
export { type ErrorCode, type FailureReason, StemworkError } from './core/errors.js'
export type { EngineOptions, EngineSettings } from './core/options.js'
export type { JobError, JobOutput, JobRecord, JobStatus } from './core/job/job.js'
export { localQueue } from './core/dispatch/local-queue.js'
export { inlineRunner } from './core/runner/inline-runner.js'
export { processRunner } from './core/runner/process-runner.js'
export {
  stems4Workflow,
  type StemsDefinition,
  type StemsSettings,
  stemsWorkflow,
  stemsWorkflowOf,
} from './core/separation/stems-workflow.js'
export {
  defineWorkflow,
  type OutputDeclaration,
  type Stage,
  type StageContext,
  type Workflow,
  type WorkflowDefinition,
} from './core/workflow/workflow.js'
export type * from './core/ports/application-store.js'
export type * from './core/ports/blob-store.js'
export type * from './core/ports/job-queue.js'
export type * from './core/ports/job-store.js'
export type { Logger } from './core/ports/logger.js'
export type * from './core/ports/runner.js'
