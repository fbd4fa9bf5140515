export { type CreateEngineOptions, createEngine, type IncludedWorkflow } from './create-engine.js'
export {
  type ApplicationLimits,
  type BatchStatus,
  type BulkAction,
  type BulkOptions,
  type BulkReport,
  type EngineHealth,
  type EngineParts,
  type FoundJobs,
  type JobEngine,
  type JobEstimate,
  type JobScope,
  type LimitChange,
  type Limits,
  type PoolStatus,
  type SubmitBatchInput,
  type UsageEntriesQuery,
  type UsageTotalsQuery,
  type Waiting,
  type Worker,
} from './core/engine/engine.js'
export { type LocalFile, localFile } from './core/engine/intake/local-file.js'
export type { SubmitInput, SubmitInputOf, SubmitOptions } from './core/engine/intake/submission.js'
export type { EngineEvents } from './core/engine/events.js'
export { type ErrorCode, type FailureReason, StemworkError } from './core/engine/errors.js'
export type { EngineSettings } from './core/engine/options.js'
export type { JobError, JobOutput, JobRecord, JobStatus } from './core/engine/job/job.js'
export { processRunner } from './core/engine/runner/process-runner.js'
export {
  type StemsDefinition,
  type StemsRequest,
  type StemsSettings,
  type StemsWorkflow,
  stemsWorkflow,
} from './core/workflows/separation/stems-workflow.js'
export type { AudioSettings } from './core/workflows/audio-settings.js'
export { analyzeWorkflow } from './core/workflows/analysis/analyze-workflow.js'
export { loudnessWorkflow } from './core/workflows/loudness/loudness-workflow.js'
export { notesWorkflow } from './core/workflows/notes/notes-workflow.js'
export { practiceWorkflow } from './core/workflows/practice/practice-workflow.js'
export { transcodeWorkflow } from './core/workflows/transcode/transcode-workflow.js'
export { composeWorkflow, type Composition, type StepDefinition } from './core/engine/workflow/composition.js'
export {
  defineWorkflow,
  type OutputDeclaration,
  type Stage,
  type StageContext,
  type Workflow,
  type WorkflowDefinition,
} from './core/engine/workflow/workflow.js'
export {
  type Program,
  program,
  type ProgramFailure,
  type ProgramOptions,
  type ProgramProgress,
  type ProgramResult,
} from './core/engine/program/program.js'
export type { Kept, RunContext, StepContext, StepFile, StepOptions, Steps } from './core/engine/workflow/steps.js'
export type { StepRecord } from './core/engine/job/step.js'
export type { RetryOn, WorkflowPolicy } from './core/engine/workflow/policy.js'
export type { LedgerEntry, LedgerGroup, LedgerQuery, LedgerTotal } from './core/engine/job/ledger.js'
export type { Quota, Usage } from './core/engine/job/quota.js'
export type { Checkpoint } from './core/engine/workflow/checkpoint.js'
export type { ApiKey, Application, ApplicationStore } from './core/engine/ports/application-store.js'
export type { BlobStore } from './core/engine/ports/blob-store.js'
export type { JobQueue } from './core/engine/ports/job-queue.js'
export type { JobQuery, JobStore } from './core/engine/ports/job-store.js'
export { type Logger, silentLogger } from './core/engine/ports/logger.js'
export type { InputFile, Runner } from './core/engine/ports/runner.js'
export type { Tracing } from './core/engine/ports/tracing.js'
export type { TraceContext } from './core/engine/job/trace-context.js'
export type { ServiceConfig } from './service-config.js'
export * from './old-names.js'
