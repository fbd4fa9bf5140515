import { container, instanceCachingFactory, type InjectionToken } from './container.js'
import { memoryApplications, memoryBlobs, memoryJobs } from './adapters/memory.js'
import { memoryQueue } from './adapters/queues/memory/memory-queue.js'
import { invalidOptions } from './core/engine/errors.js'
import { type EngineParts, JobEngine } from './core/engine/engine.js'
import { type EngineSettings, resolveEngineOptions } from './core/engine/options.js'
import { assertInstalled } from './core/engine/package-files.js'
import { processRunner } from './core/engine/runner/process-runner.js'
import { audioPeaks as makeAudioPeaks } from './core/media/pictures/audio-peaks.js'
import { analyzeWorkflow } from './core/workflows/analysis/analyze-workflow.js'
import { loudnessWorkflow } from './core/workflows/loudness/loudness-workflow.js'
import { notesWorkflow } from './core/workflows/notes/notes-workflow.js'
import { practiceWorkflow } from './core/workflows/practice/practice-workflow.js'
import { transcodeWorkflow } from './core/workflows/transcode/transcode-workflow.js'
import { stemsWorkflow, type StemsWorkflow } from './core/workflows/separation/stems-workflow.js'
import { WorkflowRegistry } from './core/engine/workflow/registry.js'
import type { Workflow } from './core/engine/workflow/workflow.js'

/** The default workflows of an engine: separation, loudness, transcoding, analysis, notes and practice. */
export type IncludedWorkflow =
  | StemsWorkflow
  | Workflow<'service/loudness'>
  | Workflow<'service/transcode'>
  | Workflow<'service/analyze'>
  | Workflow<'service/notes'>
  | Workflow<'service/practice'>

/**
 * Parts and settings of an engine. Parts that are not given are made here: memory stores, the local queue, a child
 * process, and the workflows of the package.
 */
export type CreateEngineOptions<Offered extends Workflow = Workflow> = EngineSettings & Partial<EngineParts<Offered>>

const tokens = {
  jobs: Symbol('jobs') as InjectionToken<EngineParts['jobs']>,
  queue: Symbol('queue') as InjectionToken<EngineParts['queue']>,
  blobs: Symbol('blobs') as InjectionToken<EngineParts['blobs']>,
  applications: Symbol('applications') as InjectionToken<EngineParts['applications']>,
  workflows: Symbol('workflows') as InjectionToken<EngineParts['workflows']>,
  runner: Symbol('runner') as InjectionToken<EngineParts['runner']>,
}

/**
 * The composition root: the only file that knows which classes fill which ports. Starts nothing; call `engine.start()`
 * to make the process a worker.
 *
 * @example
 * const engine = createEngine({ blobs: fsBlobs({ directory: 'data/blobs' }), limits: { maxAudioSeconds: 600 } })
 * @throws StemworkError `INVALID_OPTIONS`; `MISSING_DEPENDENCY` when a bundler has taken the code without the package's
 * other files.
 */
export function createEngine<Offered extends Workflow = IncludedWorkflow>(
  options: CreateEngineOptions<Offered> = {},
): JobEngine<Offered> {
  assertInstalled()
  const given: unknown = options
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const words = given === null ? 'null' : Array.isArray(given) ? 'a list' : typeof given
    throw invalidOptions(`createEngine takes an object with options, or nothing, not ${words}.`)
  }
  const { jobs, queue, blobs, applications, runner, workflows, audioPeaks, ...settings } = options
  if (runner !== undefined && settings.child !== undefined) {
    throw invalidOptions(
      'child configures the runner that createEngine makes, but you passed one of your own. Pass these options to ' +
        'processRunner() instead.',
    )
  }
  // Before the parts are made: the runner would complain about options of its own names.
  const { child, dispatch } = resolveEngineOptions(settings)
  const scope = container.createChildContainer()
  provide(tokens.jobs, jobs, memoryJobs)
  provide(tokens.queue, queue, memoryQueue)
  provide(tokens.blobs, blobs, memoryBlobs)
  provide(tokens.applications, applications, memoryApplications)
  provide(tokens.workflows, workflows, () => [
    stemsWorkflow(),
    loudnessWorkflow(),
    transcodeWorkflow(),
    analyzeWorkflow(),
    notesWorkflow(),
    practiceWorkflow(),
  ])
  provide(tokens.runner, runner, () => {
    let registry: WorkflowRegistry | undefined
    return processRunner({
      ...child,
      slots: dispatch.concurrency,
      niceness: dispatch.niceness,
      logger: settings.logger,
      resolve: (id) => (registry ??= new WorkflowRegistry(scope.resolve(tokens.workflows))).require(id),
    })
  })
  return new JobEngine(
    {
      jobs: scope.resolve(tokens.jobs),
      queue: scope.resolve(tokens.queue),
      blobs: scope.resolve(tokens.blobs),
      applications: scope.resolve(tokens.applications),
      // Without given workflows, `Offered` is the default list, which is made then.
      workflows: scope.resolve(tokens.workflows) as readonly Offered[],
      runner: scope.resolve(tokens.runner),
      audioPeaks: audioPeaks ?? makeAudioPeaks({ directory: settings.scratchDirectory }),
    },
    settings,
  )

  function provide<Part>(token: InjectionToken<Part>, given: Part | undefined, make: () => Part): void {
    scope.register(token, { useFactory: instanceCachingFactory(() => given ?? make()) })
  }
}
