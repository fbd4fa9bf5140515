import type { BulkAction, JobEngine } from '../../core/engine/engine.js'
import { type JobRecord, jobStatusSchema } from '../../core/engine/job/job.js'
import { checkInput } from '../../core/engine/workflow/check-input.js'
import type { JobQuery } from '../../core/engine/ports/job-store.js'
import type { JobRow } from '../../http/operator/answers.js'
import { jobSearchSchema, searchJobs } from '../../http/operator/job-search.js'
import { bulkJobs } from './bulk-jobs.js'
import {
  actionOf,
  type Command,
  type CommandInput,
  exitStatus,
  flag,
  type Terminal,
  UsageError,
  valued,
} from '../command.js'
import type { DeploymentUrls } from '../service/deployment.js'
import { withEnvironment } from '../input/environment.js'
import { storageOptions, storeOptions, storeUrls } from '../service/service-storage.js'
import { namedApplication, withEngine } from '../service/store-engine.js'
import { harmless } from '../terminal/style.js'

const store = ['data', 'store', 'blobs']
const filters = ['status', 'app', 'workflow']

export const command: Command = {
  usage: 'jobs <list | show | cancel | retry | delete> [<job id> | --all] (--data <dir> | --store <url>)',
  description:
    'Lists and changes jobs of all applications, in the store of a service that is stopped (--data, SQLite) or ' +
    'whose store is shared (--store postgres://...).',
  positionals: { min: 1, max: 2 },
  options: {
    ...storeOptions,
    ...withEnvironment({ blobs: storageOptions.blobs }),
    all: flag(
      'Instead of a job id: all jobs that --status, --app and --workflow match; without these, every job of ' +
        'the store.',
    ),
    status: valued('status', 'With list and --all: QUEUED, STARTED, SUCCEEDED or FAILED.'),
    app: valued('name', 'With list and --all: jobs of this application.'),
    workflow: valued('id', 'With list and --all: jobs of this workflow.'),
    search: valued('text', 'With list: an id, or words of a name or batch.'),
    error: valued(
      'text',
      'With list: failed jobs with this in their error or its cause, of the newest 2,000 that failed.',
    ),
    after: valued('cursor', 'With list: continues after an earlier list.'),
    why: flag(
      'Also show why its last attempt failed, with stack and causes. Clients never see this; the log has the ' +
        'same text.',
    ),
    json: flag('Print JSON.'),
  },
  actions: {
    list: {
      description: 'Lists jobs, newest first, 50 at a time.',
      options: ['data', 'store', ...filters, 'search', 'error', 'after', 'json'],
    },
    show: {
      usage: '<job id>',
      description: 'Shows a job and its attempts.',
      options: ['data', 'store', 'why', 'json'],
    },
    cancel: {
      usage: '<job id> | --all',
      description: 'Ends a waiting job; asks the worker of a running one to stop it.',
      options: [...store, 'all', ...filters, 'json'],
    },
    retry: {
      usage: '<job id> | --all',
      description: 'Queues a FAILED job again, as long as its inputs are kept.',
      options: [...store, 'all', ...filters, 'json'],
    },
    delete: {
      usage: '<job id> | --all',
      description: 'Deletes a job in any state, with its files.',
      options: [...store, 'all', ...filters, 'json'],
    },
  },
  async run(input, terminal) {
    const action = actionOf(input, command)
    const isBulk = input.isOn('all')
    checkTarget(action, input, isBulk)
    // A retry obeys the limits that the service stored, because this command has no options for them.
    return withEngine(urlsOf(action, input), terminal, async (engine) => {
      if (!isBulk || !isBulkAction(action))
        return await actions[action as keyof typeof actions](engine, input, terminal)
      const json = input.isOn('json')
      return await bulkJobs(engine, action, await queryOf(engine, input), { terminal, json })
    })
  },
}

const bulkActions: readonly string[] = ['cancel', 'retry', 'delete'] satisfies BulkAction[]

function isBulkAction(action: string): action is BulkAction {
  return bulkActions.includes(action)
}

/** @throws UsageError unless it is clear which jobs are meant */
function checkTarget(action: string, { positionals, values }: CommandInput, isBulk: boolean): void {
  const hasId = positionals[1] !== undefined
  if (!isBulkAction(action)) {
    if (action === 'show' && !hasId) throw new UsageError('jobs show needs a job id.')
    return
  }
  if (isBulk && hasId) throw new UsageError('Give a job id or --all, not both.')
  if (!isBulk && !hasId)
    throw new UsageError(
      `jobs ${action} needs a job id, or --all for every job that --status, --app and --workflow match.`,
    )
  const filter = filters.find((name) => values[name] !== undefined)
  if (!isBulk && filter !== undefined) throw new UsageError(`--${filter} belongs to --all, not to a job id.`)
}

/** @throws UsageError if the action needs files and no option says where they are */
function urlsOf(action: string, input: CommandInput): DeploymentUrls {
  const urls = storeUrls(input, 'Jobs live in a store: give --data <dir> or --store <url>.')
  const blobs = input.text('blobs')
  if (blobs !== undefined) return { ...urls, blobs }
  if (urls.store !== undefined && (action === 'retry' || action === 'delete'))
    throw new UsageError(`jobs ${action} needs the files of the jobs: use the --blobs <url> of the service.`)
  return urls
}

async function queryOf(engine: JobEngine<never>, input: CommandInput): Promise<JobQuery> {
  const workflow = input.text('workflow')
  const given = input.text('status')
  const status = jobStatusSchema.optional().safeParse(given?.toUpperCase())
  if (!status.success)
    throw new UsageError(`--status must be one of ${jobStatusSchema.options.join(', ')}, not "${given}".`)
  return {
    app: namedApplication(await engine.applications.listApplications(), input)?.id,
    statuses: status.data && [status.data],
    workflows: workflow === undefined ? undefined : [workflow],
  }
}

type Action = (engine: JobEngine<never>, input: CommandInput, terminal: Terminal) => Promise<number>

const actions = {
  async list(engine, input, { stdout }) {
    const applications = await engine.applications.listApplications()
    const app = namedApplication(applications, input)?.id
    const checked = checkInput(jobSearchSchema, {
      status: input.text('status')?.toUpperCase(),
      workflow: input.text('workflow'),
      app,
      text: input.text('search'),
      error: input.text('error'),
      after: input.text('after'),
    })
    if (!checked.success)
      throw new UsageError(`--${String(checked.issues[0]?.path[0])}: ${checked.issues[0]?.message}.`)
    const page = await searchJobs(engine, checked.data)
    if (input.isOn('json')) stdout.write(`${JSON.stringify(page)}\n`)
    else {
      const names = new Map(applications.map((one) => [one.id, one.name]))
      stdout.write(page.jobs.map((job) => rowText(job, names.get(job.app) ?? job.app)).join('') || 'No jobs.\n')
      if (page.next !== null) stdout.write(`More: --after ${page.next}\n`)
    }
    return exitStatus.done
  },

  show: withJob((engine, id) => engine.get(id), shown),
  cancel: withJob((engine, id) => engine.cancel(id), shown),
  retry: withJob((engine, id) => engine.retry(id), shown),
  delete: withJob(
    (engine, id) => engine.delete(id),
    ({ id }, input) => (input.isOn('json') ? `${JSON.stringify({ id, deleted: true })}\n` : `deleted ${id}\n`),
  ),
} satisfies Record<string, Action>

/** An action on the job with the given id, and its output. */
function withJob<Job extends object>(
  act: (engine: JobEngine<never>, id: string) => Promise<Job | undefined>,
  printed: (job: Job, input: CommandInput, engine: JobEngine<never>) => Promise<string> | string,
): Action {
  return async (engine, input, { stdout, stderr }) => {
    const id = input.positionals[1] ?? ''
    const job = await act(engine, id)
    if (job) stdout.write(await printed(job, input, engine))
    else
      stderr.write(
        `stemwork: There is no job ${id} in this store. It may have been deleted, or it is in another store.\n`,
      )
    return job ? exitStatus.done : exitStatus.failed
  }
}

async function shown(job: JobRecord, input: CommandInput, { applications }: JobEngine<never>): Promise<string> {
  const application = (await applications.getApplication(job.app))?.name ?? null
  const facts = summary(job, application, input.isOn('why'))
  return input.isOn('json') ? `${JSON.stringify(facts)}\n` : lines(facts)
}

function rowText({ id, status, createdAt, workflow, name, error }: JobRow, app: string): string {
  const time = new Date(createdAt).toISOString().slice(0, 19)
  const why = error ? `  ${error.reason ?? error.code}` : ''
  return `${harmless(`${id}  ${time}  ${status.padEnd(9)}  ${app}  ${workflow}  ${name ?? ''}${why}`)}\n`
}

function time(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}

function summary(job: JobRecord, application: string | null, why: boolean): Record<string, unknown> {
  const { id, name, app, workflow, status, stage, attempts, error, cancelRequested } = job
  return {
    id,
    name,
    app,
    application,
    workflow,
    status,
    stage,
    attempts,
    ...(cancelRequested && status === 'STARTED' ? { cancelRequested } : {}),
    createdAt: time(job.createdAt),
    startedAt: time(job.startedAt),
    completedAt: time(job.completedAt),
    worker: job.lease?.owner ?? null,
    error,
    history: job.history.map(({ reason, ...attempt }) => {
      const times = { startedAt: time(attempt.startedAt), endedAt: time(attempt.endedAt) }
      return { ...attempt, ...times, ...(why ? { reason } : {}) }
    }),
    ...(why ? { why: job.failure } : {}),
  }
}

function lines({ history, ...shown }: Record<string, unknown>): string {
  const facts = Object.entries(shown)
    .filter(([name, value]) => value !== null || name === 'why')
    .map(([name, value]) => {
      if (name !== 'why')
        return `${name.padEnd(12)} ${harmless(typeof value === 'string' ? value : JSON.stringify(value))}\n`
      return typeof value === 'string'
        ? `why\n  ${value.replaceAll('\n', '\n  ')}\n`
        : 'why          no attempt has failed\n'
    })
  const attempts = (
    history as { token: number; worker: string; startedAt: string; outcome: string; reason?: string | null }[]
  ).map(({ token, worker, startedAt, outcome, reason }) => {
    const end = outcome === 'lapsed' ? 'worker lost' : outcome.replaceAll('_', ' ')
    return `attempt ${String(token).padEnd(4)} ${startedAt}  ${worker}  ${end}${reason ? `: ${reason}` : ''}\n`
  })
  return [...facts, ...attempts].join('')
}
