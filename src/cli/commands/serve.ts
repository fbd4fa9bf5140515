import type { Logger } from '../../core/engine/ports/logger.js'
import { createEngine } from '../../create-engine.js'
import { KeySeal, signInCode } from '../../http/auth/sealed-key.js'
import { createHandler } from '../../http/handler.js'
import { hasTus } from '../../http/storage/resumable-routes.js'
import { acceptUpgrades, serve } from '../../http/mounts/node.js'
import { serveDefaults } from '../../http/mounts/serve-defaults.js'
import type { HandlerSettings } from '../../http/options.js'
import { type Command, type CommandInput, exitStatus, flag, type Terminal, UsageError, valued } from '../command.js'
import { configurable } from '../input/configuration.js'
import { keepHeapRoom } from '../service/heap-room.js'
import { mcpPath, withMcp } from '../service/mcp-mount.js'
import { type Interruption, onInterruption } from '../terminal/interruption.js'
import { logJobs } from '../service/job-log.js'
import { separationSettings, serviceModelOptions } from '../workflows/model-options.js'
import { recommendedModelOption, withRecommendedModel } from './recommended-model.js'
import { settleKeys, settleWebhookSecret } from '../service/service-keys.js'
import {
  deploymentUrls,
  openStorage,
  refuseRunning,
  requiredSecrets,
  type ServiceStorage,
  privateInputsOption,
  storageOptions,
} from '../service/service-storage.js'
import { logOptions, serviceLogger } from '../terminal/stderr-logger.js'
import { tracesOption, tracingOf } from '../service/tracing.js'
import { allWorkflows } from '../workflows/workflow-modules.js'

const basePath = '/v1'
const otherBasePath = '/api'
const defaultPort = 8080
const defaultGraceSeconds = 10
/**
 * Shorter than an engine's default: only one process works on these jobs, and after a crash it should not wait long for
 * its own leases.
 */
const dispatch = { leaseMs: 10_000, sweepIntervalMs: 3_000 }

export const command: Command = {
  usage: 'serve [options]',
  description:
    `Runs the HTTP service under ${basePath} (and ${otherBasePath}). Prints one line on stdout when it is ready; ` +
    'logs go to stderr.',
  options: configurable({
    host: valued('address', 'Address to listen on. Default: 127.0.0.1, which only this machine can reach.'),
    port: valued('n', `Port to listen on, 0 for a free one. Default: ${defaultPort}.`),
    ...storageOptions,
    'api-only': flag('Accept jobs but let `stemwork worker` nodes run them (needs --store postgres://...).'),
    workflows: valued(
      'file',
      'ES module with your own workflows, JSON file with compositions of known workflows, or a folder of such files.',
      { multiple: true },
    ),
    aliases: valued(
      'alias=id',
      'Offer a workflow under another id, for example music-ai/stems-vocals-accompaniment=' +
        'service/stems-vocals-accompaniment.',
      { was: 'alias', multiple: true },
    ),
    'public-url': valued(
      'url',
      `Address of the service as clients see it, for links. With no path, ${basePath} is added.`,
    ),
    'trust-proxy': flag(
      'Take addresses of the service and of clients from X-Forwarded-Proto, -Host, -Prefix and -For. Only behind a ' +
        'proxy that sets these headers itself.',
    ),
    cors: valued(
      'origin',
      'Origin of web pages that may call the service, such as https://app.example.org; * is any.',
      {
        inCode: 'cors.origins',
        multiple: true,
      },
    ),
    'api-keys': valued(
      'key',
      'A key for clients, of 16 or more characters. Several share one application, "default", with its jobs; ' +
        '"stemwork keys create" makes others. Prefer STEMWORK_API_KEYS, which does not appear in process lists. ' +
        'Default: a key is created and shown once.',
      { was: 'api-key', multiple: true, variable: 'STEMWORK_API_KEYS' },
    ),
    'operator-key': valued(
      'key',
      `Serve ${basePath}/operator, a page for viewing and controlling all applications, protected by this key ` +
        'of 16 or more characters. Prefer STEMWORK_OPERATOR_KEY, which does not appear in process lists.',
      { inCode: 'operator.key' },
    ),
    metrics: flag('Serve /metrics, for Prometheus, without a key.'),
    console: flag(`Serve ${basePath}/console, a page for uploading songs and listening to stems.`),
    live: valued(
      'n',
      `Serve ${basePath}/live, a WebSocket that separates what plays, for up to n streams at a time, each of which ` +
        'takes up to 60 % of a core (needs ws).',
      { inCode: 'live.streams' },
    ),
    mcp: flag(
      `Serve ${mcpPath}, the tools for agents (Model Context Protocol over HTTP; needs ` +
        '@modelcontextprotocol/sdk).',
    ),
    'allow-private-inputs': privateInputsOption,
    ...serviceModelOptions,
    ...recommendedModelOption,
    traces: tracesOption,
    grace: valued(
      'seconds',
      'How long running jobs may take to finish after the first Ctrl-C; with --data, the rest continue after the ' +
        `next start. Default: ${defaultGraceSeconds}.`,
      { inCode: 'dispatch.graceMs' },
    ),
    ...logOptions,
  }),
  notes:
    'Ctrl-C stops it; a second one stops it at once.\n' +
    'STEMWORK_WEBHOOK_SECRET ("whsec_" and base64) signs the webhooks of the application "default"; other ' +
    'applications have their own secrets (keys webhook-secret).',
  async run(given, terminal) {
    const input = given.isOn('api-only') ? given : await withRecommendedModel(given, terminal)
    const request = serviceRequest(input)
    keepHeapRoom()
    const interruption = onInterruption((status) => process.exit(status), { starts: true })
    const logger = serviceLogger(given, terminal.stderr)
    const storage = await openStorage(request.urls, logger)
    try {
      await refuseRunning(storage)
      await runService(request, storage, interruption, logger, terminal)
      return exitStatus.done
    } finally {
      await storage.close()
      interruption.release()
    }
  },
}

type ServiceRequest = ReturnType<typeof serviceRequest>

/** @throws UsageError for an invalid value */
export function serviceRequest(input: CommandInput) {
  return {
    host: input.text('host') ?? '127.0.0.1',
    port: input.number('port', { min: 0, max: 65_535 }) ?? defaultPort,
    urls: deploymentUrls(input),
    apiOnly: input.isOn('api-only'),
    aliases: aliasesOf(input.list('aliases')),
    keys: input.list('api-keys'),
    allowPrivate: input.isOn('allow-private-inputs'),
    mcp: input.isOn('mcp'),
    liveStreams: input.number('live', { min: 1, max: 1000 }),
    operatorKey: operatorKeyOf(input.text('operator-key')),
    /** Settings for `createEngine`, passed on unchanged. */
    engine: input.settings?.engine,
    /** Settings for `createHandler`. */
    http: {
      ...input.settings?.handler,
      publicUrl: publicUrlOf(input.text('public-url')),
      trustProxy: input.isOn('trust-proxy'),
      cors: corsOf(input.values.cors as string[] | undefined),
      console: input.isOn('console'),
      metrics: input.isOn('metrics'),
    },
    input,
    graceMs: 1000 * (input.number('grace', { min: 0, max: 3600 }) ?? defaultGraceSeconds),
  }
}

function aliasesOf(given: readonly string[]): Record<string, string> {
  const pairs = given.map((text) => {
    const [alias = '', id = '', ...more] = text.split('=')
    if (alias !== '' && id !== '' && more.length === 0) return [alias, id] as const
    throw new UsageError(`--aliases must be like music-ai/some-name=service/some-name, not "${text}".`)
  })
  return Object.fromEntries(pairs)
}

function corsOf(origins: string[] | undefined): HandlerSettings['cors'] {
  if (!origins || origins.includes('*')) return origins && { origins: '*' }
  const wrong = origins.find((origin) => !URL.canParse(origin) || new URL(origin).origin !== origin)
  if (wrong !== undefined)
    throw new UsageError(`--cors must be * or like https://app.example.org, without a path, not "${wrong}".`)
  return { origins }
}

function operatorKeyOf(key: string | undefined): string | undefined {
  if (key !== undefined && key.length < 16) throw new UsageError('--operator-key must have 16 or more characters.')
  return key
}

function publicUrlOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash)
    throw new UsageError(`--public-url must be like https://stems.example.org, not "${text}".`)
  return url.pathname === '/' ? url.origin + basePath : url.origin + url.pathname.replace(/\/+$/, '')
}

async function liveOf(request: ServiceRequest) {
  const { liveStreams: streams, input } = request
  if (streams === undefined) return undefined
  const { model, runtime } = separationSettings(input)
  const { liveService } = await import('../../live.js')
  return { separate: liveService({ model, runtime }), streams }
}

async function runService(
  request: ServiceRequest,
  storage: ServiceStorage,
  interruption: Interruption,
  logger: Logger,
  { stdout, stderr }: Terminal,
): Promise<void> {
  const { parts, scratchDirectory, durable } = storage
  const isShared = parts.queue.traits.scope === 'shared'
  if (request.apiOnly && !isShared)
    throw new UsageError(
      '--api-only leaves the jobs to other processes, which need a store and a queue that reach them: give --store ' +
        'postgres://... and leave --queue out.',
    )
  const secrets = requiredSecrets(storage, process.env.STEMWORK_LINK_SECRET)
  const newKey = await settleKeys(parts.applications, request.keys)
  await settleWebhookSecret(parts.applications, process.env.STEMWORK_WEBHOOK_SECRET)
  const workflows = await allWorkflows(request.input, !request.apiOnly)
  const engine = createEngine({
    ...request.engine,
    ...parts,
    workflows,
    aliases: request.aliases,
    scratchDirectory,
    logger,
    tracing: await tracingOf(request.input),
    dispatch: { ...(isShared ? {} : dispatch), graceMs: request.graceMs },
    fetch: { allowPrivate: request.allowPrivate },
    webhooks: { secret: process.env.STEMWORK_WEBHOOK_SECRET },
  })
  logJobs(engine, logger)
  const handler = createHandler(engine, {
    basePath: [basePath, otherBasePath],
    ...request.http,
    secrets,
    operator: request.operatorKey === undefined ? undefined : { key: request.operatorKey },
    manageKeys: true,
    resumableUploads: hasTus(),
    live: await liveOf(request),
  })
  try {
    const server = await serve(request.mcp ? await withMcp(handler, basePath) : handler, {
      host: request.host,
      port: request.port,
      // Behind a proxy, all connections come from its address.
      maxConnectionsPerAddress: request.http.trustProxy ? serveDefaults.maxConnections : undefined,
    })
    // With `--mcp`, the service's handler is wrapped, and the wrapper cannot open WebSockets.
    const upgraded = request.mcp ? acceptUpgrades(server.server, handler) : []
    if (!request.apiOnly) await engine.start()
    const code = newKey && signInCode(new KeySeal(secrets), newKey)
    stderr.write(addressLines(request, request.http.publicUrl ?? server.origin + basePath, { newKey, code }))
    stdout.write(`stemwork listening on ${server.origin}${basePath}\n`)
    await interruption.stopped()
    stderr.write('Stopping. Press Ctrl-C again to stop at once.\n')
    // Jobs that are not durable would be lost anyway, so they are not waited for.
    const timeoutMs = durable ? request.graceMs : 0
    for (const socket of upgraded) socket.destroy()
    await Promise.all([server.close({ timeoutMs }), engine.close({ timeoutMs })])
  } finally {
    await engine.close({ timeoutMs: 0 })
  }
}

/** Addresses of the service's pages, and its key if it is new. */
function addressLines(
  request: ServiceRequest,
  base: string,
  { newKey, code }: { newKey?: string; code?: string },
): string {
  // After the hash, so that the code reaches no server, and no log but this one.
  const hash = code ? `#code=${code}` : ''
  const lines = [
    request.http.console && `Console: ${base}/console${hash}\n`,
    request.operatorKey !== undefined && `Operator: ${base}/operator\n`,
    newKey && `API key, shown only this once: ${newKey}\n`,
  ]
  return lines.filter(Boolean).join('')
}
