import { invalidOptions } from './errors.js'
import type { ApplicationStore } from './ports/application-store.js'
import type { AudioPeaks } from './ports/audio-peaks.js'
import type { BlobStore } from './ports/blob-store.js'
import type { JobQueue } from './ports/job-queue.js'
import type { JobStore } from './ports/job-store.js'
import type { Runner } from './ports/runner.js'
import { isWorkflow, type Workflow } from './workflow/workflow.js'
import type { JobEvents } from './events.js'
import type { EngineOptions } from './options.js'
import type { Logger } from './ports/logger.js'
import type { StoreClock } from './store-clock.js'
import type { WorkflowRegistry } from './workflow/registry.js'

/**
 * The parts of an engine. The host owns the parts that it passes in: `close()` closes only the queue and the runner.
 */
export interface EngineParts<Offered extends Workflow = Workflow> {
  jobs: JobStore
  queue: JobQueue
  blobs: BlobStore
  applications: ApplicationStore
  runner: Runner
  workflows: readonly Offered[]
  /** Computes the peaks of results, for players that draw waveforms. Default: none. */
  audioPeaks?: AudioPeaks
}

/** Dependencies of most parts of an engine: the host's parts, and objects made once for all. */
export interface SharedParts extends Omit<EngineParts, 'workflows' | 'audioPeaks'> {
  clock: StoreClock
  events: JobEvents
  workflows: WorkflowRegistry
  options: EngineOptions
  logger: Logger
}

interface PartType {
  what: string
  methods: readonly string[]
  from: string
  hasScope: boolean
}

const partTypes: Record<Exclude<keyof EngineParts, 'workflows' | 'audioPeaks'>, PartType> = {
  jobs: {
    what: 'a job store',
    methods: [
      'time',
      'create',
      'createAll',
      'usage',
      'backlog',
      'findByIdempotencyKey',
      'get',
      'list',
      'count',
      'resultBytes',
      'recordBytes',
      'claim',
      'apply',
      'due',
      'purge',
      'unreadable',
      'rules',
      'changeRule',
      'ahead',
      'beginFilePass',
    ],
    from: 'what memoryJobs() returns, or `jobs` of sqliteStores(), postgresStores() or keyvStores()',
    hasScope: true,
  },
  queue: {
    what: 'a queue',
    methods: ['notify', 'subscribe', 'check', 'close'],
    from: 'what memoryQueue(), postgresQueue() or bullmqQueue() returns',
    hasScope: true,
  },
  blobs: {
    what: 'a blob store',
    methods: ['put', 'get', 'stat', 'delete', 'deletePrefix', 'list'],
    from: 'what memoryBlobs(), fsBlobs() or s3Blobs() returns',
    hasScope: true,
  },
  applications: {
    what: 'an application store',
    methods: ['putApplication', 'getApplication', 'listApplications', 'putKey', 'getKey', 'listKeys'],
    from: 'what memoryApplications() returns, or `applications` of sqliteStores(), postgresStores() or keyvStores()',
    hasScope: false,
  },
  runner: {
    what: 'a runner',
    methods: ['run', 'status', 'close'],
    from: 'what processRunner() or inlineRunner() returns',
    hasScope: false,
  },
}

/**
 * @throws StemworkError `INVALID_OPTIONS` for a part of the wrong type, and for parts that cannot work correctly
 * together.
 */
export function checkParts(parts: EngineParts): void {
  for (const name of Object.keys(partTypes) as (keyof typeof partTypes)[]) checkPart(name, parts[name], partTypes[name])
  const workflows: unknown = parts.workflows
  if (!Array.isArray(workflows) || !workflows.every(isWorkflow)) {
    throw invalidOptions('workflows must be a list of what defineWorkflow() or stemsWorkflow() returns.')
  }
  refuseUnsafePair(parts)
}

function checkPart(name: string, part: unknown, { what, methods, from, hasScope }: PartType): void {
  const given = (typeof part === 'object' && part !== null ? part : {}) as Record<string, unknown>
  const missing = methods.filter((method) => typeof given[method] !== 'function')
  const { scope } = (given.traits ?? {}) as { scope?: unknown }
  const lacks = [...missing, ...(hasScope && scope !== 'process' && scope !== 'shared' ? ['traits.scope'] : [])]
  if (lacks.length === 0) return
  const lack = lacks.length === methods.length + Number(hasScope) ? 'all that one has' : lacks.join(', ')
  throw invalidOptions(`${name} is not ${what}: it lacks ${lack}. Pass ${from}.`)
}

function refuseUnsafePair({ jobs, queue, blobs }: EngineParts): void {
  if (queue.traits.scope !== 'shared') return
  if (jobs.traits.scope !== 'shared') {
    throw invalidOptions(
      'A queue shared by several processes needs a job store that several processes may write, such as Postgres; ' +
        'this store is correct only while one process writes it. Use the local queue with it.',
    )
  }
  if (blobs.traits.scope !== 'shared') {
    throw invalidOptions(
      'A queue shared by several processes needs a blob store that all of them reach, such as S3 or a shared ' +
        'folder; this one exists in one process only.',
    )
  }
}
