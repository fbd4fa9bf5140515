import type { JobStore } from '../../core/engine/ports/job-store.js'
import type { Worker, workerKind } from '../../core/engine/workers/worker.js'
import type { ApplicationStore } from '../../core/engine/ports/application-store.js'
import { rememberedRules } from '../../core/engine/limits/scheduling-rules.js'
import {
  everyApplication,
  idOf,
  type RuleChange,
  type RuleTarget,
  type SchedulingRule,
} from '../../core/engine/job/scheduling.js'
import { actionOf, type Command, CommandInput, exitStatus, flag, UsageError, valued } from '../command.js'
import { requireData, storeOptions, storeUrls, withStore } from '../service/service-storage.js'
import { stderrLogger } from '../terminal/stderr-logger.js'
import { namedApplication } from '../service/store-engine.js'

const changes: Record<string, (input: CommandInput) => RuleChange> = {
  pause: () => ({ state: 'paused' }),
  resume: () => ({ state: 'open' }),
  drain: () => ({ state: 'draining' }),
  limit: (input) => ({ maxRunning: input.number('max', { min: 1, max: 1_000_000 }) ?? null }),
}
const ofWhat = ['data', 'store', 'app', 'workflow', 'json']

export const command: Command = {
  usage:
    'schedule <show | pause | resume | drain | limit> [--app <name> | --workflow <id>] (--data <dir> | --store <url>)',
  description:
    'Controls which jobs start, on all workers: those of an application, of a workflow or, with neither option, of ' +
    'the whole deployment. Running jobs continue. The service must be stopped (--data, SQLite), or its store ' +
    'shared (--store postgres://...).',
  positionals: { min: 1, max: 1 },
  options: {
    ...storeOptions,
    app: valued('name', 'Name of an application. With limit, * is every application that has no limit of its own.'),
    workflow: valued('id', 'Id of a workflow.'),
    max: valued('n', 'With limit: number of jobs that may run at a time. Default: no limit.'),
    json: flag('Print JSON.'),
  },
  actions: {
    show: { description: 'Shows what is paused, draining or limited.', options: ['data', 'store', 'json'] },
    pause: { description: 'Accepts jobs but starts none.', options: ofWhat },
    resume: { description: 'Ends a pause or a drain. Workers notice within 15 seconds.', options: ofWhat },
    drain: { description: 'Accepts no new jobs and runs the existing ones.', options: ofWhat },
    limit: { description: 'Limits how many jobs run at a time, across all workers.', options: [...ofWhat, 'max'] },
  },
  async run(input, { stdout, stderr }) {
    const change = changes[actionOf(input, command)]?.(input)
    const urls = storeUrls(input, 'Rules are kept in a store. Add --data <dir> or --store <url>.')
    requireData(urls)
    return withStore(urls, stderrLogger(stderr), async ({ parts: { jobs, applications } }) => {
      if (change) await rememberedRules(jobs).change(await targetOf(input, applications), change)
      const rules = await jobs.rules()
      const workflow = input.text('workflow')
      if (workflow !== undefined && rules.some(({ target }) => target.kind === 'workflow' && target.id === workflow))
        stderr.write(await unknownText(workflow, jobs))
      const names = new Map((await applications.listApplications()).map(({ id, name }) => [id, name]))
      stdout.write(input.isOn('json') ? `${JSON.stringify(rules)}\n` : lines(rules, names))
      return exitStatus.done
    })
  },
}

async function targetOf(input: CommandInput, applications: ApplicationStore): Promise<RuleTarget> {
  const [app, workflow] = [input.text('app'), input.text('workflow')]
  if (app !== undefined && workflow !== undefined) throw new UsageError('Use --app or --workflow, not both.')
  if (workflow !== undefined) return { kind: 'workflow', id: workflow }
  if (app === everyApplication) return { kind: 'application', id: app }
  const known = namedApplication(await applications.listApplications(), input)
  return known ? { kind: 'application', id: known.id } : { kind: 'deployment' }
}

/** A warning, not a refusal: a stopped service may have workflows of its own. */
async function unknownText(id: string, jobs: JobStore): Promise<string> {
  const kind: typeof workerKind = 'worker'
  const workers = await jobs.documents.list(kind, { limit: 100 })
  const { packageWorkflows } = await import('../workflows/model-options.js')
  const ours = await packageWorkflows(new CommandInput({}), false)
  const known = new Set([...ours.map((one) => one.id), ...workers.flatMap(({ value }) => (value as Worker).workflows)])
  if (known.has(id) || (await jobs.count({ workflows: [id] }, { max: 1 })) > 0) return ''
  return (
    `Warning: no worker and no job has a workflow ${id}. Known: ${[...known].join(', ')}. If the id is wrong, end ` +
    'its rule with `schedule resume` or, for a limit, `schedule limit` without --max.\n'
  )
}

function lines(rules: readonly SchedulingRule[], names: ReadonlyMap<string, string>): string {
  if (rules.length === 0) return 'Nothing is paused, drained or limited.\n'
  return rules
    .map(({ target, state, maxRunning }) => {
      const what = `${target.kind} ${names.get(idOf(target)) ?? idOf(target)}`.trimEnd()
      return `${what.padEnd(40)} ${state}${maxRunning === null ? '' : `, at most ${maxRunning} at a time`}\n`
    })
    .join('')
}
