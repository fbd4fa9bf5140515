import { createEngine } from '../../create-engine.js'
import { createHandler } from '../../http/handler.js'
import type { HttpEngine } from '../../http/http-engine.js'
import { type RunningServer, serve } from '../../http/mounts/node.js'
import { type Command, type CommandInput, exitStatus, flag, UsageError, valued } from '../command.js'
import { configurable } from '../input/configuration.js'
import { finiteWork } from '../service/finite-work.js'
import { onInterruption } from '../terminal/interruption.js'
import { logJobs } from '../service/job-log.js'
import { serviceModelOptions } from '../workflows/model-options.js'
import { type DeploymentUrls, isPostgres, refuseUnknown } from '../service/deployment.js'
import { deploymentUrls, openStorage, privateInputsOption, storageOptions } from '../service/service-storage.js'
import { logOptions, serviceLogger } from '../terminal/stderr-logger.js'
import { jobCount } from '../terminal/style.js'
import { tracesOption, tracingOf } from '../service/tracing.js'
import { allWorkflows } from '../workflows/workflow-modules.js'

const operatorPaths = ['/healthz', '/readyz', '/metrics']

export const command: Command = {
  usage: 'worker --store postgres://... --blobs s3://... [options]',
  description:
    'Runs jobs that other nodes accept. Start as many as you need, on any machine that can reach the same servers.',
  options: configurable({
    store: storageOptions.store,
    queue: storageOptions.queue,
    blobs: storageOptions.blobs,
    concurrency: valued('n', 'Number of jobs to run at a time. Default: 1; a separation uses all processors but one.'),
    labels: valued(
      'name',
      'What this worker has, for example gpu, or how much, for example gpuMemory=24. It takes only jobs whose ' +
        'needs it meets.',
      { was: 'label', inCode: 'dispatch.labels', multiple: true },
    ),
    once: flag('Run one job, then exit: 0 if it succeeded or none was waiting, 1 if it failed.'),
    drain: flag('Run jobs until none is waiting, then exit.'),
    lease: valued(
      'seconds',
      'Seconds after the last heartbeat of a worker until another worker takes over its jobs. Default: 30.',
      { inCode: 'dispatch.leaseMs' },
    ),
    grace: valued(
      'seconds',
      'Seconds that running jobs may take to finish when the worker is stopped or drained; others then take over ' +
        'the rest. Default: 10.',
      { inCode: 'dispatch.graceMs' },
    ),
    ...serviceModelOptions,
    workflows: valued(
      'file',
      'ES module with your own workflows, JSON file with compositions of known workflows, or a folder of such files. ' +
        'Use the same on every node.',
      { multiple: true },
    ),
    'health-host': valued('address', 'Address of the health port. Default: 127.0.0.1.'),
    'health-port': valued('n', 'Answers /healthz, /readyz and /metrics on this port (0: a free one). Default: none.'),
    'allow-private-inputs': privateInputsOption,
    traces: tracesOption,
    ...logOptions,
  }),
  notes:
    'SIGTERM or Ctrl-C stops it: running jobs get the time of --grace; other workers then take over the rest, ' +
    'without counting an attempt.\n' +
    'STEMWORK_WEBHOOK_SECRET signs the webhooks of applications without their own secret.',
  async run(input, { stdout, stderr }) {
    const urls = sharedUrls(input)
    const once = input.isOn('once')
    const isFinite = once || input.isOn('drain')
    if (once && input.isOn('drain')) throw new UsageError('--once and --drain exclude each other; use one of them.')
    const concurrency = input.number('concurrency', { min: 1, max: 1000 }) ?? 1
    const logger = serviceLogger(input, stderr)
    const leaseSeconds = input.number('lease', { min: 1, max: 3600 }) ?? 30
    const healthPort = input.number('health-port', { min: 0, max: 65_535 })
    const interruption = onInterruption((status) => process.exit(status), { starts: true })
    const storage = await openStorage(urls, logger)
    try {
      const engine = createEngine({
        ...input.settings?.engine,
        ...storage.parts,
        workflows: await allWorkflows(input, true),
        scratchDirectory: storage.scratchDirectory,
        logger,
        tracing: await tracingOf(input),
        dispatch: {
          concurrency,
          graceMs: (input.number('grace', { min: 0, max: 86_400 }) ?? 10) * 1000,
          labels: input.list('labels'),
          leaseMs: leaseSeconds * 1000,
          sweepIntervalMs: Math.min(15_000, leaseSeconds * 500),
        },
        fetch: { allowPrivate: input.isOn('allow-private-inputs') },
        webhooks: { secret: process.env.STEMWORK_WEBHOOK_SECRET },
      })
      logJobs(engine, logger)
      const health = healthPort === undefined ? undefined : await healthServer(engine, input, healthPort)
      try {
        if (isFinite) {
          void interruption.stopped()
          const ended = await finiteWork(engine, { once, lanes: concurrency, signal: interruption.signal })
          const failed = ended.filter(({ status }) => status === 'FAILED').length
          stdout.write(`stemwork worker: ${jobCount(ended.length)} ended, ${failed} of them FAILED\n`)
          return once && failed > 0 ? exitStatus.failed : exitStatus.done
        }
        await engine.start()
        stdout.write(`stemwork worker ready${health ? `, health at ${health.origin}/readyz` : ''}\n`)
        await interruption.stopped()
        stderr.write('Stopping. Press Ctrl-C again to stop at once.\n')
        return exitStatus.done
      } finally {
        try {
          await engine.close()
        } finally {
          await health?.close({ timeoutMs: 0 })
        }
      }
    } finally {
      await storage.close()
      interruption.release()
    }
  },
}

/** @throws UsageError unless other processes can reach the store, the queue and the blobs */
function sharedUrls(input: CommandInput): DeploymentUrls {
  const given = deploymentUrls(input)
  const urls = { ...given, queue: given.queue ?? 'postgres:' }
  const names = ['store', 'queue', 'blobs'] as const
  for (const name of names) refuseUnknown(`--${name}`, urls[name])
  for (const name of names) {
    const url = urls[name]
    if (url === undefined || url === 'memory:' || (name === 'store' && !isPostgres(url)))
      throw new UsageError(
        `A worker shares its jobs with other processes: --${name} must be ${reachable[name]}, which all of them reach.`,
      )
  }
  return urls
}

const reachable = {
  store: 'postgres://...',
  queue: 'postgres: or redis://...',
  blobs: 's3://<bucket> or file:<shared folder>',
}

/** Serves only the health and metrics paths of the HTTP interface. */
function healthServer(engine: HttpEngine, input: CommandInput, port: number): Promise<RunningServer> {
  const handler = createHandler(engine, { basePath: '', metrics: true })
  return serve(
    async (request, context) =>
      operatorPaths.includes(new URL(request.url).pathname)
        ? handler(request, context)
        : new Response(null, { status: 404 }),
    { host: input.text('health-host') ?? '127.0.0.1', port },
  )
}
