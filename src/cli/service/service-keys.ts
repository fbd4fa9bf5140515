import type { Application, ApplicationStore } from '../../core/engine/ports/application-store.js'
import { createApplication, issueKey, revokeKey, rotateWebhookSecret } from '../../http/auth/applications.js'

/** Name of the one application of a service that is started from the command line. */
const applicationName = 'default'
const fromCommandLine = 'command line'

/**
 * Makes exactly the given keys valid, besides keys that were not given on the command line; creates a key if there
 * would be none.
 *
 * @returns the new key, which can be shown only now; undefined if none was needed
 */
export async function settleKeys(store: ApplicationStore, givenKeys: readonly string[]): Promise<string | undefined> {
  const app = await application(store)
  const given = new Set<string>()
  for (const key of givenKeys) given.add((await issueKey(store, app.id, { key, label: fromCommandLine })).record.id)

  const now = Date.now()
  const active = (await store.listKeys(app.id)).filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
  // A key that the operator removed from the command line must stop working.
  const dropped = active.filter(({ id, label }) => label === fromCommandLine && !given.has(id))
  for (const { id } of dropped) await revokeKey(store, id)
  if (active.length > dropped.length) return undefined
  return (await issueKey(store, app.id, { label: 'made at the first start' })).key
}

/**
 * Makes the secret from the environment sign the webhooks of the default application; the previous secret also signs
 * for another day.
 *
 * @throws StemworkError `INVALID_OPTIONS` for a secret of another form.
 */
export async function settleWebhookSecret(store: ApplicationStore, secret: string | undefined): Promise<void> {
  if (secret === undefined) return
  const { id, webhookSecrets } = await application(store)
  if (webhookSecrets?.[0]?.secret !== secret) await rotateWebhookSecret(store, id, { secret })
}

async function application(store: ApplicationStore): Promise<Application> {
  const known = (await store.listApplications()).find(({ name }) => name === applicationName)
  return known ?? (await createApplication(store, { name: applicationName }))
}
