// Prints docs/configuration.md from the option schemas: node scripts/configuration.mjs > docs/configuration.md
// With "security" prints docs/security.md with its table of limits regenerated; with "type", src/service-config.ts.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { fileSettings, nameInFile } from '../build/cli/input/configuration.js'
import { command as serveCommand } from '../build/cli/commands/serve.js'
import { command as workerCommand } from '../build/cli/commands/worker.js'
import { engineOptionsSchema } from '../build/core/engine/options.js'
import { stemsSettingsSchema } from '../build/core/workflows/separation/stems-workflow.js'
import { serveDefaults } from '../build/http/mounts/serve-defaults.js'
import { handlerOptionsSchema } from '../build/http/options.js'

const variables = {
  STEMWORK_LINK_SECRET:
    'Signs upload and result links; 32 or more characters, the same on every node that serves HTTP. Several are ' +
    'separated by commas: the first one signs, and all are accepted.',
  STEMWORK_WEBHOOK_SECRET:
    'Signs the webhooks of the application `default`. For other applications without their own secret, it works as ' +
    '`webhooks.secret` above.',
  STEMWORK_MODELS: 'Folder of the models.',
  STEMWORK_MODEL_MIRROR: 'Folder or base URL to fetch models from.',
  STEMWORK_OFFLINE: '`1`: never fetch models from the network.',
  'AWS_*, npm_config_registry': 'As usual, for `--blobs s3://...` and for models in npm packages.',
}

/** The limits for one client: a description, and the option of the function that sets the limit. */
const bounds = [
  ['Size of an input or upload', 'engine', 'limits.maxFileBytes', 'bytes'],
  ['Length of its audio', 'engine', 'limits.maxAudioSeconds', 's'],
  ['Queued jobs of an application', 'engine', 'limits.maxQueuedJobs'],
  ['Duration of one attempt at a job', 'engine', 'limits.jobTimeoutMs', 'ms'],
  ['Stored uploads, results and records of an application', 'handler', 'limits.storedBytes', 'bytes'],
  ['Simultaneous uploads of an application', 'handler', 'limits.uploadsInFlight'],
  ['Uploads with one ticket, at a time and in total', undefined, '1'],
  ['Bytes that a form adds around its file', undefined, '262,144 bytes'],
  ['Parts of a form', undefined, '200'],
  ['How long results are kept', 'engine', 'retention.resultsMs', 'ms'],
  ['How long unused uploads are kept', 'engine', 'retention.unusedUploadsMs', 'ms'],
  ['How long records of ended jobs are kept', 'engine', 'retention.jobsMs', 'ms'],
  ['Request line and headers', undefined, '16 KiB, the limit of `node:http`; `serve`: `server.maxHeaderSize`'],
  ['Requests in progress on an HTTP/1.1 connection', undefined, '5; one more closes it'],
  ['Requests in progress on an HTTP/2 connection', undefined, '100; more are refused (`REFUSED_STREAM`)'],
  ['Framing around the chunks of a body', undefined, '65,536 bytes, or a fifth of what is sent'],
  ['JSON body', 'handler', 'limits.jsonBytes', 'bytes'],
  ['Depth of a JSON body', undefined, '32 levels'],
  ['`params` of a job', 'handler', 'limits.paramsBytes', 'bytes'],
  ['`name`, `batchName` and `Idempotency-Key`', undefined, '255 characters'],
  ['`metadata`', undefined, '50 keys of 40 characters, values of 500'],
  ['`inputUrl` of the included workflows, and other addresses', undefined, '8,192 characters'],
  ['`copyResultsTo`', undefined, '32 outputs, 32,768 characters as JSON'],
  ['Issues listed in an error', undefined, '20, of 300 characters each'],
  ['Members and values of a JSON body', undefined, 'as many as fit into `limits.paramsBytes`, plus 256'],
  ['Page of a list', 'handler', 'limits.listBytes', 'bytes'],
  [
    'Simultaneous lists, archives, batches and bulk changes of an application',
    undefined,
    '1, and 50 wait; applications take turns after every 8 jobs, or 4 changed jobs',
  ],
  ['Requests that one of these counts as', undefined, '1, plus 1 for every 64 KiB of a list or 10 changed jobs'],
  ['New jobs that a batch counts as', undefined, '1, plus 1 for every 10 of its jobs'],
  ['Documents (`/docs`, `/openapi.json`) generated at a time for one client', undefined, '1, and 50 wait'],
  ['Open event streams and waiting requests of an application', 'handler', 'limits.waitingRequests'],
  ['Open event streams and waiting requests of all applications', 'handler', 'limits.allWaitingRequests'],
  ['Files sent at a time for one application', 'handler', 'limits.downloads'],
  ['Files sent at a time for all applications', 'handler', 'limits.allDownloads'],
  ['JSON bodies over 16 KiB received at a time from one application', undefined, '16'],
  ['JSON bodies over 16 KiB received at a time from all applications', undefined, '128'],
  ['JSON body without a key', undefined, '16,384 bytes'],
  ['Answers over 64 KiB sent at a time to one application', undefined, '16'],
  ['Answers over 64 KiB sent at a time to all applications', undefined, '128'],
  [
    'Connections of the pool of `postgresStores` for creates, lists and counts',
    undefined,
    'half of them; applications take turns',
  ],
  ['Changes in the folder of `fsBlobs` at a time', undefined, '2 of the 4 file threads; applications take turns'],
  ['Reads in the folder of `fsBlobs` at a time', undefined, '1 of the 4 file threads; applications take turns'],
  ['Files whose peaks are measured at a time', undefined, '2, of different applications; 20 more of each wait'],
  ['Waiting time with `Prefer: wait`', undefined, '60 s'],
  ['How long a stream stays open once `authenticate` refuses its sender', 'handler', 'limits.heartbeatMs', 'ms'],
  ['Pause while sending or reading a body', 'handler', 'limits.idleMs', 'ms'],
  ['Lowest transfer rate of a body', 'handler', 'limits.minBytesPerSecond', 'bytes/s'],
  ['Bytes read from a refused upload', 'handler', 'limits.discardBytes', 'bytes'],
  ['Bytes read from any other unused body', undefined, '1,048,576 bytes'],
  ['New jobs of an application', 'handler', 'rateLimits.create'],
  ['Status requests of an application', 'handler', 'rateLimits.status'],
  ['Other requests of an application', 'handler', 'rateLimits.other'],
  ['Downloads by the links of an application', 'handler', 'rateLimits.link'],
  ['Requests with a wrong key from one address', 'handler', 'rateLimits.wrongKeys'],
  ['Connections of `serve()`', 'serve', 'maxConnections'],
  ['Connections of `serve()` from one address', 'serve', 'maxConnectionsPerAddress'],
  ['Time to send the request headers', 'serve', 'headersTimeoutMs', 'ms'],
  ['Idle connection', 'serve', 'idleTimeoutMs', 'ms'],
  ['Simultaneous slow downloads of inputs', 'engine', 'inputs.slowInputs'],
  ['Simultaneous slow downloads of inputs for one application', 'engine', 'inputs.slowInputsPerApplication'],
  ['Lowest transfer rate of an input', 'engine', 'inputs.minBytesPerSecond', 'bytes/s'],
  ['Lowest transfer rate of an input while all slots for slow downloads are taken', undefined, '64 times as much'],
  ['Time to download an input', 'engine', 'inputs.totalMs', 'ms'],
  ['Simultaneous webhook messages', 'engine', 'webhooks.concurrency'],
  ['Further messages, whose receivers have not answered within 250 ms', 'engine', 'webhooks.slowReceivers'],
  ['Webhook messages of both kinds for one application', 'engine', 'webhooks.concurrencyPerApplication'],
  ['Consecutive failures of a receiver after which its messages wait', undefined, '5'],
  ['Pause between attempts to reach a failing receiver', undefined, '60,000 ms, doubling up to 7,200,000 ms'],
  ['How long a receiver may fail before it is disabled', 'engine', 'webhooks.disableAfterMs', 'ms'],
  ['Response time of a webhook receiver', 'engine', 'webhooks.timeoutMs', 'ms'],
  ['Attempts to deliver a webhook message', 'engine', 'webhooks.retryDelaysMs'],
  ['Messages that the record of a job or a batch keeps', undefined, 'the last 20'],
  ['Idempotency keys that the record of a batch keeps', undefined, 'the last 100'],
  ['Keys that an application makes for itself', undefined, '100, and the last 100 that have ended'],
  ['Response time of a name server, for each of two attempts', undefined, '2,000 ms'],
  ['Time to connect to an address given by a client', undefined, '10,000 ms'],
  ['Redirects of an input', undefined, '3'],
  ['Attempts at a job', 'engine', 'dispatch.maxAttempts'],
  ['Jobs that an application starts per turn, and run slots reserved for it', 'engine', 'limits.applications'],
]

const defaultsOf = {
  engine: engineOptionsSchema.parse({}),
  handler: handlerOptionsSchema.parse({}),
  serve: serveDefaults,
}
const functionOf = { engine: 'createEngine', handler: 'createHandler', serve: 'serve' }

console.log({ security, type: configurationType }[process.argv[2]]?.() ?? configuration())

function security() {
  const page = readFileSync(new URL('../docs/security.md', import.meta.url), 'utf8')
  const [before, rest] = page.split('<!-- bounds: made by scripts/configuration.mjs -->\n')
  const after = rest.slice(rest.indexOf('<!-- end of bounds -->'))
  return [before, '<!-- bounds: made by scripts/configuration.mjs -->\n', boundsTable().join('\n'), '\n\n', after]
    .join('')
    .trimEnd()
}

function boundsTable() {
  refuseMissing()
  const rows = bounds.map(([what, owner, option, unit]) => {
    if (owner === undefined) return `| ${what} | fixed | ${option} |`
    return `| ${what} | \`${functionOf[owner]}\`: \`${option}\` | ${amount(valueAt(defaultsOf[owner], option), unit)} |`
  })
  return ['', '| limit | option | default |', '|---|---|---|', ...rows]
}

/** Every new limit must be in the table. */
function refuseMissing() {
  const named = new Set(bounds.map(([, owner, option]) => `${owner} ${option}`))
  const all = [
    ...Object.keys(defaultsOf.engine.limits).map((name) => `engine limits.${name}`),
    ...Object.keys(defaultsOf.engine.inputs).map((name) => `engine inputs.${name}`),
    ...Object.keys(defaultsOf.engine.webhooks).map((name) => `engine webhooks.${name}`),
    ...Object.keys(defaultsOf.handler.limits).map((name) => `handler limits.${name}`),
    ...Object.keys(defaultsOf.handler.rateLimits).map((name) => `handler rateLimits.${name}`),
    ...Object.keys(serveDefaults).map((name) => `serve ${name}`),
  ]
  const missing = all.filter((one) => !named.has(one))
  if (missing.length > 0) throw new Error(`Add to the bounds in scripts/configuration.mjs: ${missing.join(', ')}.`)
}

function valueAt(options, path) {
  return path.split('.').reduce((value, name) => value?.[name], options)
}

function amount(value, unit = '') {
  if (value === undefined) throw new Error('A limit names an option that does not exist.')
  if (Array.isArray(value)) return `${value.length + 1}`
  if (typeof value === 'object' && Object.keys(value).length === 0) return '1, and none'
  if (typeof value === 'object') return `${value.requests} in ${value.perSeconds} s`
  return `${value.toLocaleString('en')} ${unit}`.trimEnd()
}

export function configuration() {
  return [
    '# Configuration',
    '',
    'For developers and operators: every option with its default, in code, on the command line and in a file.',
    '',
    'This page is generated from the option schemas by `scripts/configuration.mjs`. Invalid values are rejected at ' +
      'startup, with a message that names the option.',
    '',
    '## `createEngine(options)`',
    '',
    'You can also pass any of the parts: `jobs`, `queue`, `blobs`, `applications`, `runner`, `workflows`.',
    '',
    ...table(engineOptionsSchema),
    '',
    '## `createHandler(engine, options)`',
    '',
    ...table(handlerOptionsSchema),
    '',
    '## `stemsWorkflow(settings)` and related functions',
    '',
    'All settings are optional. `serve` and `worker` have options for `model`, `allowedModels`, `threads`, ' +
      '`provider` and `decoders`.',
    '',
    ...table(stemsSettingsSchema),
    '',
    '## Command line, environment and file',
    '',
    '`serve`, `worker`, `doctor` and the commands that look into a service take their options from the command line, ' +
      'from the environment and from `stemwork.config.ts`, `.mjs`, `.js` or `.json` in the current folder (or ' +
      '`--config <file>`). The command line overrides the environment, which overrides the file; lists are ' +
      'combined. Options marked "..." take a list: separated by commas, or given several times. Paths are relative ' +
      'to the current folder. Wrong values are refused, and so are unknown names on the command line and in a file, ' +
      'with the nearest name as a suggestion; unknown variables are ignored. A file in TypeScript needs Node 22.18 ' +
      'or newer, Bun or Deno. Only a file can set ' +
      Object.entries(fileSettings).map(settingNames).join(', and ') +
      ', each as in the tables above; use the same file on all nodes. Other options that the table below does not ' +
      'have can be set only in code.',
    '',
    '```js',
    '// stemwork.config.mjs',
    "/** @type {import('stemwork').ServiceConfig} */",
    'export default {',
    '  port: 9000,',
    "  data: 'data',",
    '  console: true,',
    "  workflows: ['workflows'],",
    '  engine: { retention: { resultsMs: 24 * 3600 * 1000 }, quota: { audioMinutes: 600 } },',
    '  handler: { rateLimits: { create: { requests: 2, perSeconds: 1 } } },',
    '}',
    '```',
    '',
    'In TypeScript, write `export default { ... } satisfies ServiceConfig`. Secrets do not belong in a file under ' +
      'version control: set them with environment variables.',
    '',
    '| command line | variable | file | in code | of |',
    '|---|---|---|---|---|',
    ...commandOptions(),
    '',
    '## Other variables',
    '',
    '| variable | meaning |',
    '|---|---|',
    ...Object.entries(variables).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
  ].join('\n')
}

/** The options of `serve` and `worker`, each by its four names. */
function commandOptions() {
  const places = [
    ['createEngine', engineOptionsSchema],
    ['createHandler', handlerOptionsSchema],
    ['stemsWorkflow', stemsSettingsSchema],
  ].map(([name, schema]) => [name, z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })])
  const [[, { properties }]] = places
  Object.assign(properties, { queue: {}, blobs: {}, workflows: {} })
  places.push(['serve', { properties: { host: {}, port: {} } }])
  const all = { ...serveCommand.options, ...workerCommand.options }
  return Object.entries(all).map(([option, { variable, inCode, type, multiple }]) => {
    const found = places.flatMap(([owner, schema]) => pathIn(schema, inCode ?? nameInFile(option), owner))
    if (inCode !== undefined && found.length === 0) throw new Error(`--${option}: there is no ${inCode} in code.`)
    const code = found[0] ?? ''
    const commands = [serveCommand, workerCommand].filter(({ options }) => options[option]).map(commandName)
    const value = type === 'boolean' ? '' : multiple ? ' ...' : ''
    const file = option === 'config' ? '' : `\`${nameInFile(option)}\``
    return `| \`--${option}\`${value} | \`${variable}\` | ${file} | ${code} | ${commands.join(', ')} |`
  })
}

function settingNames([part, names]) {
  const shown = names.map((name) => `\`${name}\``)
  return `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)} of \`${part}\``
}

/** The type of the configuration file. */
function configurationType() {
  const { config: _, ...options } = { ...serveCommand.options, ...workerCommand.options, ...serveCommand.options }
  const fields = Object.entries(options).flatMap(([name, option]) => [
    ...comment(option.help),
    `  ${nameInFile(name)}?: ${typeOf(option)}`,
  ])
  const settings = { engine: 'EngineSettings', handler: 'HandlerSettings' }
  for (const [part, type] of Object.entries(settings)) {
    const names = fileSettings[part].map((name) => `'${name}'`).join(' | ')
    fields.push(...comment(`Options of \`${functionOf[part]}\`.`), `  ${part}?: Pick<${type}, ${names}>`)
  }
  return [
    '// Generated from the options of `serve` and `worker` by scripts/configuration.mjs: npm run docs',
    "import type { EngineSettings } from './core/engine/options.js'",
    "import type { HandlerSettings } from './http/options.js'",
    '',
    '/**',
    ' * Contents of the configuration file of the command line, such as `stemwork.config.ts`.',
    ' *',
    ' * @example',
    " * import type { ServiceConfig } from 'stemwork'",
    ' * export default { port: 9000, console: true } satisfies ServiceConfig',
    ' */',
    'export interface ServiceConfig {',
    ...fields,
    '}',
  ].join('\n')
}

function typeOf({ type, multiple, value }) {
  if (type === 'boolean') return 'boolean'
  if (value === 'n' || value === 'seconds') return 'number'
  if (value.includes('|'))
    return value
      .split('|')
      .map((choice) => `'${choice}'`)
      .join(' | ')
  return multiple ? 'string | readonly string[]' : 'string'
}

/** A comment with lines of at most 120 columns. */
function comment(text) {
  const lines = text.match(/.{1,112}(?: |$)/g).map((line) => line.trim())
  return lines.length === 1 ? [`  /** ${lines[0]} */`] : ['  /**', ...lines.map((line) => `   * ${line}`), '   */']
}

function commandName({ usage }) {
  return usage.split(' ', 1)[0]
}

/** Whether the schema has this path, or a group with the given name has such a member. */
function pathIn({ properties = {} }, path, owner) {
  const [first, ...rest] = path.split('.')
  const isThere =
    rest.reduce((at, name) => (at?.properties ? at.properties[name] : at), properties[first]) !== undefined
  if (isThere) return [`\`${owner}\`: \`${path}\``]
  const groups = Object.entries(properties).filter(([, group]) => group.properties?.[path])
  return groups.map(([name]) => `\`${owner}\`: \`${name}.${path}\``)
}

function table(schema) {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return ['| option | default | meaning |', '|---|---|---|', ...rows(json, '')]
}

function rows(schema, prefix) {
  return Object.entries(schema.properties).flatMap(([name, property]) => {
    const path = prefix + name
    const isGroup = property.properties !== undefined && property.description === undefined
    if (isGroup) return rows(property, `${path}.`)
    return [`| \`${path}\` | ${valueText(property.default)} | ${(property.description ?? '').replaceAll('|', '\\|')} |`]
  })
}

function valueText(value) {
  return value === undefined ? '' : `\`${JSON.stringify(value)}\``
}
