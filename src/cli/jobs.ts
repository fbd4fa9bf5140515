import type { JobRecord } from '../core/engine/job/job.js'
import { type Command, exitStatus, firstPositional, UsageError } from './command.js'
import { withEnvironment } from './environment.js'
import { deploymentUrls, openStorage, storageOptions } from './service-storage.js'
import { stderrLogger } from './stderr-logger.js'

export const jobsCommand: Command = {
  usage: 'jobs show <job id> (--data <dir> | --store <url>) [--why] [--json]',
  description:
    'What the store of a service that is stopped (--data, SQLite) or shared (--store postgres://...) knows of a job.',
  positionals: { min: 2, max: 2 },
  options: {
    ...withEnvironment({ data: storageOptions.data, store: storageOptions.store }),
    why: {
      type: 'boolean',
      help: 'Also why its last attempt failed, with stack and causes; clients never see this. The log has the same text.',
    },
    json: { type: 'boolean', help: 'Print JSON.' },
  },
  actions: {
    show: { usage: '<job id>', description: 'Shows a job.', options: ['data', 'store', 'why', 'json'] },
  },
  async run(input, { stdout, stderr }) {
    const action = firstPositional(input)
    const id = input.positionals[1] ?? ''
    if (action !== 'show') throw new UsageError(`jobs ${action} is not a command. Expected: jobs show <job id>.`)
    const { data, store } = deploymentUrls(input)
    if (data === undefined && store === undefined)
      throw new UsageError('Jobs live in a store: give --data <dir> or --store <url>.')
    // A durable store wants durable files beside it; none is read here, so any folder will do.
    const storage = await openStorage(
      { data, store, blobs: data === undefined ? 'file:.' : undefined },
      stderrLogger(stderr),
    )
    try {
      const job = await storage.parts.jobs.get(id)
      if (!job) {
        stderr.write(
          `stemwork: There is no job ${id} in this store. It may have been deleted, or it is in another store.\n`,
        )
        return exitStatus.failed
      }
      const shown = summary(job, input.values.why === true)
      stdout.write(input.values.json === true ? `${JSON.stringify(shown)}\n` : lines(shown))
      return exitStatus.done
    } finally {
      await storage.close()
    }
  },
}

function summary(job: JobRecord, why: boolean): Record<string, unknown> {
  const { id, app, workflow, status, stage, attempts, error } = job
  const time = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  return {
    id,
    app,
    workflow,
    status,
    stage,
    attempts,
    createdAt: time(job.createdAt),
    startedAt: time(job.startedAt),
    completedAt: time(job.completedAt),
    worker: job.lease?.owner ?? null,
    error,
    ...(why ? { why: job.failure } : {}),
  }
}

function lines(shown: Record<string, unknown>): string {
  return Object.entries(shown)
    .filter(([name, value]) => value !== null || name === 'why')
    .map(([name, value]) => {
      if (name !== 'why') return `${name.padEnd(12)} ${typeof value === 'string' ? value : JSON.stringify(value)}\n`
      return typeof value === 'string'
        ? `why\n  ${value.replaceAll('\n', '\n  ')}\n`
        : 'why          no attempt has failed\n'
    })
    .join('')
}
