import { readFile } from 'node:fs/promises'
import type { ApiKey, Application, ApplicationStore } from '../../core/engine/ports/application-store.js'
import { createApplication, issueKey, revokeKey, rotateKey, rotateWebhookSecret } from '../../http/auth/applications.js'
import { actionOf, type Command, type CommandInput, exitStatus, flag, UsageError, valued } from '../command.js'
import { requireData, storeOptions, storeUrls, withStore } from '../service/service-storage.js'
import { stderrLogger } from '../terminal/stderr-logger.js'

const hourMs = 60 * 60 * 1000

export const command: Command = {
  usage: 'keys <create | list | rotate | revoke | webhook-secret> [key id] (--data <dir> | --store <url>) [options]',
  description:
    'Manages the API keys of a service that is stopped (--data, SQLite) or whose store is shared (--store ' +
    'postgres://...). Keys, and the secrets that sign webhooks, are shown only once, when they are created.',
  positionals: { min: 1, max: 2 },
  options: {
    ...storeOptions,
    app: valued('name', 'Name of the application; `create` creates a missing one. Default: default.'),
    label: valued('text', 'With create: what the key is for.'),
    'overlap-hours': valued(
      'n',
      'With rotate and webhook-secret: for how many hours the old key or secret still works. Default: 24.',
    ),
    'secret-file': valued(
      'file',
      'With webhook-secret: file that holds the secret ("whsec_" and base64). Default: a new one.',
    ),
    json: flag('Print JSON.'),
  },
  actions: {
    create: {
      description: 'Creates a key, and the application if it does not exist. Both secrets are shown only once.',
      options: ['data', 'store', 'app', 'label', 'json'],
    },
    list: { description: 'Lists the keys of an application.', options: ['data', 'store', 'app', 'json'] },
    rotate: {
      usage: '<key id>',
      description: 'Creates a new key to replace another, which keeps working for a while.',
      options: ['data', 'store', 'overlap-hours', 'json'],
    },
    revoke: { usage: '<key id>', description: 'Revokes a key immediately.', options: ['data', 'store', 'json'] },
    'webhook-secret': {
      description:
        'Replaces the secret that signs the webhooks of an application. For a while, the old one also signs.',
      options: ['data', 'store', 'app', 'overlap-hours', 'secret-file', 'json'],
    },
  },
  async run(input, terminal) {
    const action = actionOf(input, command) as keyof typeof perform
    const keyId = input.positionals[1]
    if ((action === 'rotate' || action === 'revoke') !== (keyId !== undefined)) {
      throw new UsageError(
        action === 'rotate' || action === 'revoke'
          ? `keys ${action} needs the id of a key, as keys list shows it.`
          : `keys ${action} takes no key id.`,
      )
    }
    const urls = storeUrls(input, 'Keys live in a store: give --data <dir> or --store <url>.')
    if (action !== 'create') requireData(urls)
    return withStore(urls, stderrLogger(terminal.stderr), async ({ parts: { applications: store } }) => {
      const appName = input.text('app') ?? 'default'
      const known = (await store.listApplications()).find(({ name }) => name === appName)
      const hours = input.number('overlap-hours', { min: 0, max: 24 * 365 }) ?? 24
      const [value, text] = await perform[action]({ store, keyId: keyId ?? '', appName, known, hours, input })
      terminal.stdout.write(`${input.isOn('json') ? JSON.stringify(value) : text}\n`)
      return exitStatus.done
    })
  },
}

interface KeyRequest {
  store: ApplicationStore
  keyId: string
  appName: string
  /** The application of that name, if there is one. */
  known: Application | undefined
  /** How long the replaced key or secret still works. */
  hours: number
  input: CommandInput
}

/** Actions; each returns its output as JSON and as text. */
const perform = {
  async create({ store, appName, known, input }) {
    const made = known ? undefined : await createApplication(store, { name: appName })
    const id = known?.id ?? made?.id ?? ''
    const webhookSecret = made?.webhookSecrets[0]?.secret
    const { key, record } = await issueKey(store, id, { label: input.text('label') ?? null })
    const signs = webhookSecret
      ? `\n${webhookSecret}\n(signs the webhooks of "${appName}"; it is shown only this once)`
      : ''
    return [
      { key, id: record.id, app: id, webhookSecret },
      `${key}\n(id ${record.id}; it is shown only this once)${signs}`,
    ]
  },
  async list({ store, appName, known }) {
    const keys = known ? await store.listKeys(known.id) : []
    const rows = keys.map(({ id, label, createdAt, expiresAt }) => {
      return { id, label, createdAt: new Date(createdAt).toISOString(), state: stateOf({ expiresAt }) }
    })
    const lines = rows.map(({ id, label, createdAt, state }) =>
      `${id}  ${createdAt}  ${state}  ${label ?? ''}`.trimEnd(),
    )
    return [rows, lines.join('\n') || `The application "${appName}" has no keys.`]
  },
  async 'webhook-secret'({ store, appName, known, hours, input }) {
    if (!known) throw new UsageError(`There is no application "${appName}". Create it with keys create --app.`)
    const file = input.text('secret-file')
    const given = file === undefined ? undefined : (await readFile(file, 'utf8')).trim()
    const secret = await rotateWebhookSecret(store, known.id, { secret: given, overlapMs: hours * hourMs })
    return [
      { secret, app: known.id },
      `${secret}\n(signs the webhooks of "${appName}"; it is shown only this once. ` +
        `For another ${hours} h, the old one also signs.)`,
    ]
  },
  async rotate({ store, keyId, hours }) {
    const { key, record } = await rotateKey(store, keyId, { overlapMs: hours * hourMs })
    return [
      { key, id: record.id },
      `${key}\n(id ${record.id}; it is shown only this once. The old key works for another ${hours} h.)`,
    ]
  },
  async revoke({ store, keyId }) {
    await revokeKey(store, keyId)
    return [{ id: keyId, state: 'ended' }, `The key ${keyId} no longer works.`]
  },
} satisfies Record<string, (request: KeyRequest) => Promise<[value: unknown, text: string]>>

function stateOf({ expiresAt }: Pick<ApiKey, 'expiresAt'>): string {
  if (expiresAt === null) return 'active'
  return expiresAt > Date.now() ? `until ${new Date(expiresAt).toISOString()}` : 'ended'
}
