// Prints docs/configuration.md from the option schemas: node scripts/configuration.mjs > docs/configuration.md
import { z } from 'zod'
import { engineOptionsSchema } from '../dist/core/engine/options.js'
import { stemsSettingsSchema } from '../dist/core/separation/workflow/stems-workflow.js'
import { handlerOptionsSchema } from '../dist/http/options.js'

const variables = {
  STEMWORK_LINK_SECRET:
    'Signs upload and result links; 32 or more characters, the same on every node that serves HTTP.',
  STEMWORK_API_KEYS: 'Keys that clients may use, with commas, beside those of `--api-key`.',
  STEMWORK_WEBHOOK_SECRET: 'Signs webhooks; as `webhooks.secret` above.',
  STEMWORK_MODELS: 'Folder of the models.',
  STEMWORK_MODEL_MIRROR: 'Folder or base URL that models are taken from.',
  STEMWORK_OFFLINE: '`1`: models are never looked for on the network.',
  'AWS_*, npm_config_registry': 'As usual, for `--blobs s3://...` and for models in npm packages.',
}

console.log(configuration())

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
