import type { Keyv } from 'keyv'
import { z } from 'zod'
import { apiKeySchema, applicationSchema, type ApplicationStore } from '../../../core/engine/ports/application-store.js'
import { Backend, keyPart, parsed } from './backend.js'
import { type AnswerDeadline, answerWithin } from './answer-deadline.js'
import { KeyLocks } from './key-locks.js'

export interface KeyvApplicationsOptions {
  /** The host's instance, over any backend. */
  keyv: Keyv
  /** An operation without an answer of the backend fails with `STORE_UNAVAILABLE` after this time. Default: 10 s. */
  timeoutMs?: number
}

const idsSchema = z.array(z.string())
const applicationIndex = 'stemwork/applications'

/**
 * Applications and their keys in any backend of Keyv. Any number of processes may read; only one may write, as the
 * lists of ids are read, extended and written back.
 */
export function keyvApplications(options: KeyvApplicationsOptions): ApplicationStore {
  const { timeoutMs = 10_000 } = options ?? {}
  const backend = Backend.of(options)
  const locks = new KeyLocks()

  return {
    putApplication: (application) => put(applicationIndex, application.id, applicationKey, JSON.stringify(application)),
    getApplication: (id) => answerWithin(timeoutMs, () => get(applicationKey(id), applicationSchema)),
    listApplications: () => list(applicationIndex, applicationKey, applicationSchema),
    putKey: (key) => put(keyIndex(key.app), key.id, apiKeyKey, JSON.stringify(key)),
    getKey: (id) => answerWithin(timeoutMs, () => get(apiKeyKey(id), apiKeySchema)),
    listKeys: (app) => list(keyIndex(app), apiKeyKey, apiKeySchema),
    deleteKey: ({ id, app }) =>
      answerWithin(timeoutMs, async (deadline) => {
        await locks.hold(apiKeyKey(id), () => backend.remove(apiKeyKey(id)))
        await changeIds(keyIndex(app), deadline, (ids) => (ids.includes(id) ? ids.filter((each) => each !== id) : ids))
      }),
  }

  /**
   * Writes the list of ids first: a record that no list names is never found, but an id without a record is skipped.
   */
  async function put(index: string, id: string, keyOf: (id: string) => string, text: string): Promise<void> {
    await answerWithin(timeoutMs, async (deadline) => {
      await changeIds(index, deadline, (ids) => (ids.includes(id) ? ids : [...ids, id]))
      await locks.hold(keyOf(id), async () => {
        deadline.check()
        await backend.write(keyOf(id), text)
      })
    })
  }

  async function changeIds(index: string, deadline: AnswerDeadline, change: (ids: string[]) => string[]) {
    await locks.hold(index, async () => {
      deadline.check()
      const ids = (await get(index, idsSchema)) ?? []
      deadline.check()
      const changed = change(ids)
      if (changed !== ids) await backend.write(index, JSON.stringify(changed))
    })
  }

  async function get<Value>(key: string, schema: z.ZodType<Value>): Promise<Value | undefined> {
    return parsed(schema, key, await backend.read(key))
  }

  async function list<Entry extends { id: string; createdAt: number }>(
    index: string,
    keyOf: (id: string) => string,
    schema: z.ZodType<Entry>,
  ): Promise<Entry[]> {
    return answerWithin(timeoutMs, async () => {
      const keys = ((await get(index, idsSchema)) ?? []).map(keyOf)
      const texts = await backend.readMany(keys)
      return keys
        .flatMap((key, position) => parsed(schema, key, texts[position]) ?? [])
        .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
    })
  }
}

function applicationKey(id: string): string {
  return `stemwork/application/${keyPart(id)}`
}

function apiKeyKey(id: string): string {
  return `stemwork/key/${keyPart(id)}`
}

function keyIndex(app: string): string {
  return `stemwork/keys/${keyPart(app)}`
}
