// Prints docs/configuration.md from the option schemas: node scripts/configuration.mjs > docs/configuration.md
// With "security" prints docs/security.md, with its table of bounds made anew.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { engineOptionsSchema } from '../dist/core/engine/options.js'
import { stemsSettingsSchema } from '../dist/core/separation/workflow/stems-workflow.js'
import { serveDefaults } from '../dist/http/mounts/node.js'
import { handlerOptionsSchema } from '../dist/http/options.js'

const variables = {
  STEMWORK_LINK_SECRET:
    'Signs upload and result links; 32 or more characters, the same on every node that serves HTTP.',
  STEMWORK_API_KEYS: 'Keys that clients may use, with commas, beside those of `--api-key`.',
  STEMWORK_WEBHOOK_SECRET:
    'Signs the webhooks of the application `default`; for those without a secret of their own as `webhooks.secret` above.',
  STEMWORK_MODELS: 'Folder of the models.',
  STEMWORK_MODEL_MIRROR: 'Folder or base URL that models are taken from.',
  STEMWORK_OFFLINE: '`1`: models are never looked for on the network.',
  'AWS_*, npm_config_registry': 'As usual, for `--blobs s3://...` and for models in npm packages.',
}

/** What one client can ask of the service at most: what is bounded, and by which option of which function. */
const bounds = [
  ['Size of an input or upload', 'engine', 'limits.maxFileBytes', 'bytes'],
  ['Length of its audio', 'engine', 'limits.maxAudioSeconds', 's'],
  ['Queued jobs of an application', 'engine', 'limits.maxQueuedJobs'],
  ['Time of one attempt at a job', 'engine', 'limits.jobTimeoutMs', 'ms'],
  ['Uploads and results that an application keeps', 'handler', 'limits.storedBytes', 'bytes'],
  ['Uploads of an application at a time', 'handler', 'limits.uploadsInFlight'],
  ['Uploads with one ticket at a time, and in all', undefined, '1'],
  ['What a form adds around its file', undefined, '262,144 bytes'],
  ['How long results are kept', 'engine', 'retention.resultsMs', 'ms'],
  ['How long unused uploads are kept', 'engine', 'retention.unusedUploadsMs', 'ms'],
  ['How long records of ended jobs are kept', 'engine', 'retention.jobsMs', 'ms'],
  ['Head of a request', undefined, '16 KiB, that of `node:http`; `serve`: `server.maxHeaderSize`'],
  ['JSON body', 'handler', 'limits.jsonBytes', 'bytes'],
  ['Depth of a JSON body', undefined, '32 levels'],
  ['`params` of a job', 'handler', 'limits.paramsBytes', 'bytes'],
  ['`name`, `batchName` and `Idempotency-Key`', undefined, '255 characters'],
  ['`metadata`', undefined, '50 keys of 40 characters, values of 500'],
  ['`inputUrl` and other addresses', undefined, '8,192 characters'],
  ['`copyResultsTo`', undefined, '32 outputs, 32,768 characters as JSON'],
  ['Problems that an error lists', undefined, '20, of 300 characters each'],
  ['Members and values of a JSON body', undefined, 'as many as `params` of `limits.paramsBytes` can have, and 256'],
  ['Page of a list', 'handler', 'limits.listBytes', 'bytes'],
  ['Lists of an application that are made at a time', undefined, '1; each 64 KiB count as one of its other requests'],
  ['Event streams and waiting requests of an application', 'handler', 'limits.waitingRequests'],
  ['Time that a request waits with `Prefer: wait`', undefined, '60 s'],
  ['How long an event stream outlives its key', 'handler', 'limits.heartbeatMs', 'ms'],
  ['Pause in a body, or of a reader', 'handler', 'limits.idleMs', 'ms'],
  ['Pace of a body', 'handler', 'limits.minBytesPerSecond', 'bytes/s'],
  ['What is read of a refused upload', 'handler', 'limits.discardBytes', 'bytes'],
  ['What is read of any other body that is not used', undefined, '1,048,576 bytes'],
  ['New jobs of an application', 'handler', 'rateLimits.create'],
  ['Status requests of an application', 'handler', 'rateLimits.status'],
  ['Other requests of an application', 'handler', 'rateLimits.other'],
  ['Requests with a wrong key from one address', 'handler', 'rateLimits.wrongKeys'],
  ['Connections of `serve()`', 'serve', 'maxConnections'],
  ['Of these, those of one address', 'serve', 'maxConnectionsPerAddress'],
  ['Time for the head of a request', 'serve', 'headersTimeoutMs', 'ms'],
  ['Connection on which nothing moves', 'serve', 'idleTimeoutMs', 'ms'],
  ['Inputs that come slowly, at a time', 'engine', 'inputs.slowInputs'],
  ['Of these, those of one application', 'engine', 'inputs.slowInputsPerApplication'],
  ['Pace of an input', 'engine', 'inputs.minBytesPerSecond', 'bytes/s'],
  ['Time for an input to come', 'engine', 'inputs.totalMs', 'ms'],
  ['Webhook messages under way', 'engine', 'webhooks.concurrency'],
  ['Of these, those of one application', 'engine', 'webhooks.concurrencyPerApplication'],
  ['Time for a webhook receiver to answer', 'engine', 'webhooks.timeoutMs', 'ms'],
  ['Tries of a webhook message', 'engine', 'webhooks.retryDelaysMs'],
  ['Time for a name server to answer, twice', undefined, '2,000 ms'],
  ['Time to connect to an address that a client named', undefined, '10,000 ms'],
  ['Redirects of an input', undefined, '3'],
  ['Attempts at a job', 'engine', 'dispatch.maxAttempts'],
]

const defaultsOf = {
  engine: engineOptionsSchema.parse({}),
  handler: handlerOptionsSchema.parse({}),
  serve: serveDefaults,
}
const functionOf = { engine: 'createEngine', handler: 'createHandler', serve: 'serve' }

console.log(process.argv[2] === 'security' ? security() : configuration())

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
  return ['', '| what is bounded | by which option | default |', '|---|---|---|', ...rows]
}

/** A limit that is added belongs into the table. */
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
  if (value === undefined) throw new Error('A bound names an option that is not there.')
  if (Array.isArray(value)) return `${value.length + 1}`
  if (typeof value === 'object') return `${value.requests} in ${value.perSeconds} s`
  return `${value.toLocaleString('en')} ${unit}`.trimEnd()
}

export function configuration() {
  return [
    '# Configuration',
    '',
    'Made from the option schemas by `scripts/configuration.mjs`; a wrong value is refused at the start with a message that names the option.',
    '',
    '## `createEngine(options)`',
    '',
    'Beside these, any part may be given: `jobs`, `queue`, `blobs`, `applications`, `runner`, `workflows`.',
    '',
    ...table(engineOptionsSchema),
    '',
    '## `createHandler(engine, options)`',
    '',
    ...table(handlerOptionsSchema),
    '',
    '## `stemsWorkflow(settings)` and its like',
    '',
    'All may be left out. `serve` and `worker` have the first three, and `provider`, as options.',
    '',
    ...table(stemsSettingsSchema),
    '',
    '## Variables of the command line',
    '',
    '`stemwork <command> --help` lists the options. Secrets, which must not appear in a process list, and paths come from the environment:',
    '',
    '| variable | meaning |',
    '|---|---|',
    ...Object.entries(variables).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
  ].join('\n')
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
