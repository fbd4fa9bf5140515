import { randomUUID } from 'node:crypto'
import { invalidOptions, requireTimes, StemworkError } from '../../core/engine/errors.js'
import { applicationIdSchema } from '../../core/engine/job/application-id.js'
import type { ApiKey, Application, ApplicationStore } from '../../core/engine/ports/application-store.js'
import { newWebhookSecret, secretKey } from '../../core/engine/webhooks/signature.js'
import { checkInput, issueTexts } from '../../core/engine/workflow/check-input.js'
import { fingerprint, generateApiKey } from './api-key.js'

/** A new key, which is shown only once. */
export interface IssuedKey {
  /** The value that clients send. It is stored nowhere. */
  key: string
  record: ApiKey
}

/** Most webhook secrets in use at a time: the newest, and earlier ones whose overlap has not ended. */
const maxWebhookSecrets = 4
const defaultOverlapMs = 24 * 60 * 60 * 1000

/**
 * Registers an application. It can do nothing until a key is issued for it. The result contains the secret that signs
 * its webhooks, generated unless given: pass it on to the application, as it is never shown again. An existing
 * application with the same `id` is replaced, including its secret and limits: check `store.getApplication(id)` first.
 *
 * @throws StemworkError `INVALID_OPTIONS` for a malformed id or secret.
 */
export async function createApplication(
  store: ApplicationStore,
  input: {
    name: string
    id?: string
    webhook?: { url: string; secret?: string; events?: string[] | null } | null
  },
): Promise<Application & { webhookSecrets: NonNullable<Application['webhookSecrets']> }> {
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- programs in JavaScript forget it
  if (typeof input?.name !== 'string' || input.name === '')
    throw invalidOptions('createApplication needs a name: { name: "my shop" }.')
  const id = checkInput(applicationIdSchema, input.id ?? randomUUID())
  if (!id.success) throw invalidOptions(`createApplication: ${issueTexts(id, 'id').join()}.`)
  const { url, secret = newWebhookSecret(), events = null } = input.webhook ?? {}
  secretKey(secret)
  const application = {
    id: id.data,
    name: input.name,
    createdAt: Date.now(),
    webhook: url === undefined ? null : { url, events },
    webhookSecrets: [{ secret, expiresAt: null }],
  }
  await store.putApplication(application)
  return application
}

/**
 * Replaces an application's webhook secret; a new one is generated unless given. The old one signs for another
 * `overlapMs`, too, so that receivers can switch.
 *
 * @returns the secret, to be shown once
 * @throws StemworkError `NOT_FOUND` for an unknown application, `INVALID_OPTIONS` for a malformed secret or
 * an `overlapMs` that is not a number.
 */
export async function rotateWebhookSecret(
  store: ApplicationStore,
  app: string,
  options: { secret?: string; overlapMs?: number } = {},
): Promise<string> {
  const application = await store.getApplication(app)
  if (!application) throw unknownApplication(app)
  const { secret = newWebhookSecret(), overlapMs = defaultOverlapMs } = options
  requireTimes('rotateWebhookSecret', { overlapMs })
  secretKey(secret)
  const now = Date.now()
  const older = (application.webhookSecrets ?? [])
    .filter((known) => known.secret !== secret)
    .map((known) => ({ ...known, expiresAt: Math.min(known.expiresAt ?? Infinity, now + overlapMs) }))
    .filter(({ expiresAt }) => expiresAt > now)
  const webhookSecrets = [{ secret, expiresAt: null }, ...older].slice(0, maxWebhookSecrets)
  await store.putApplication({ ...application, webhookSecrets })
  return secret
}

/**
 * Issues a key for an application, which may have many. `key` registers a value that the operator supplies.
 *
 * @throws StemworkError `NOT_FOUND` for an unknown application, `INVALID_OPTIONS` for a supplied key that is too short
 * or not acceptable or a time that is not a number, `ALREADY_EXISTS` for one that belongs to another application.
 */
export async function issueKey(
  store: ApplicationStore,
  app: string,
  options: { label?: string | null; expiresAt?: number | null; key?: string } = {},
): Promise<IssuedKey> {
  requireTimes('issueKey', { expiresAt: options.expiresAt })
  if (!(await store.getApplication(app))) throw unknownApplication(app)
  const made = options.key === undefined ? generateApiKey() : supplied(options.key)
  const known = await store.getKey(made.id)
  if (known && known.app !== app) {
    throw new StemworkError('ALREADY_EXISTS', 'This key belongs to another application. Use another value.')
  }
  const record: ApiKey = {
    id: made.id,
    app,
    hash: made.hash,
    label: options.label ?? null,
    createdAt: known?.createdAt ?? Date.now(),
    expiresAt: options.expiresAt ?? null,
  }
  await store.putKey(record)
  return { key: made.key, record }
}

/**
 * Issues a successor and keeps the old key valid for another `overlapMs`, so that clients can switch.
 *
 * @throws StemworkError `NOT_FOUND` if there is no such key, or it has expired or been revoked; `INVALID_OPTIONS` for
 * an `overlapMs` that is not a number.
 */
export async function rotateKey(
  store: ApplicationStore,
  keyId: string,
  options: { overlapMs?: number } = {},
): Promise<IssuedKey> {
  requireTimes('rotateKey', { overlapMs: options.overlapMs })
  const old = await requireKey(store, keyId)
  const now = Date.now()
  if (old.expiresAt !== null && old.expiresAt <= now) {
    const message = `The key ${keyId} has already expired or been revoked. Issue a new one instead.`
    throw new StemworkError('NOT_FOUND', message)
  }
  const successor = await issueKey(store, old.app, { label: old.label })
  const end = now + (options.overlapMs ?? defaultOverlapMs)
  // Read again: a key that was revoked meanwhile must stay revoked.
  const latest = await requireKey(store, keyId)
  await store.putKey({ ...latest, expiresAt: Math.min(latest.expiresAt ?? Infinity, end) })
  return successor
}

/**
 * Revokes a key at once.
 *
 * @throws StemworkError `NOT_FOUND`.
 */
export async function revokeKey(store: ApplicationStore, keyId: string): Promise<ApiKey> {
  const key = await requireKey(store, keyId)
  const now = Date.now()
  const revoked = { ...key, expiresAt: key.expiresAt === null ? now : Math.min(key.expiresAt, now) }
  await store.putKey(revoked)
  return revoked
}

function unknownApplication(app: string): StemworkError {
  return new StemworkError('NOT_FOUND', `There is no application ${JSON.stringify(app)}. Create it first.`)
}

async function requireKey(store: ApplicationStore, keyId: string): Promise<ApiKey> {
  const key = await store.getKey(keyId)
  if (!key)
    throw new StemworkError(
      'NOT_FOUND',
      `There is no key with the id ${JSON.stringify(keyId)}. List the keys to see their ids.`,
    )
  return key
}

function supplied(key: string): { key: string; id: string; hash: string } {
  const print = fingerprint(key)
  if (!print) {
    throw invalidOptions(
      'An API key of your own must have 16 to 512 characters and must not begin with "stw_" unless this service ' +
        'made it.',
    )
  }
  return { key, ...print }
}
