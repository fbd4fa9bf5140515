export { runWorkflow, type RunWorkflowOptions, type WorkflowRun } from './run-workflow.js'
export { inlineRunner } from '../core/engine/runner/inline-runner.js'
export { createTestEngine, type TestEngineOptions } from './test-engine.js'
export { waitForJob, type WaitForJobOptions } from './wait-for-job.js'
