import type { z } from 'zod'
import type { ApiKey } from '../../core/engine/ports/application-store.js'
import { json } from '../routing/answer.js'
import { timeOrNull, timestamp } from '../jobs/job-view.js'
import type { KeyedCall } from '../routing/call.js'
import { issueKey, revokeKey } from '../auth/applications.js'
import { conflict, notFound } from '../routing/problem.js'
import { defineRoute } from '../routing/route.js'
import { issuedKeySchema, keyListSchema, keyViewSchema, newKeySchema } from '../schemas.js'

/** Most working keys of an application, and most ended ones that are kept, so that keys cannot fill the store. */
const maxWorkingKeys = 100
const maxEndedKeys = 100

export const keyRoutes = [
  defineRoute({
    route: 'GET /application/key',
    operation: 'listKeys',
    summary: 'List the keys of the application',
    description: 'The working keys, newest first. Key values are not stored and cannot be shown again.',
    answer: { description: 'The keys.', schema: keyListSchema },
    async handle(call) {
      return json({ keys: (await workingKeys(call)).map((key) => keyView(key, call)) })
    },
  }),
  defineRoute({
    route: 'POST /application/key',
    operation: 'createKey',
    summary: 'Create a key for the application',
    bucket: 'create',
    body: newKeySchema,
    answer: { description: 'The key, which is shown only this once.', schema: issuedKeySchema },
    problems: ['CONFLICT'],
    async handle(call, { body }) {
      const { applications } = call.service.engine
      const keys = await applications.listKeys(call.caller.id)
      if (keys.filter(isWorking).length >= maxWorkingKeys)
        throw conflict(`An application may have ${maxWorkingKeys} keys. Revoke one that is no longer used.`)
      // At most one key, unless earlier versions kept more.
      const forgotten = keys.filter((key) => !isWorking(key)).slice(maxEndedKeys, maxEndedKeys + 10)
      for (const key of forgotten) await applications.deleteKey?.(key)
      const { key, record } = await issueKey(applications, call.caller.id, { label: body.label })
      return json({ ...keyView(record, call), key })
    },
  }),
  defineRoute({
    route: 'DELETE /application/key/:id',
    operation: 'revokeKey',
    summary: 'Revoke a key of the application',
    description: 'It stops working at once.',
    answer: { description: 'The revoked key.', schema: keyViewSchema },
    problems: ['NOT_FOUND', 'CONFLICT'],
    async handle(call, { params }) {
      const { applications } = call.service.engine
      const key = (await workingKeys(call)).find(({ id }) => id === params.id)
      if (!key) throw notFound('The application has no working key with this id. List the keys to see their ids.')
      if (key.id === call.caller.keyId) throw conflict('A key cannot revoke itself. Send the request with another key.')
      return json(keyView(await revokeKey(applications, key.id), call))
    },
  }),
]

async function workingKeys(call: KeyedCall): Promise<ApiKey[]> {
  const keys = await call.service.engine.applications.listKeys(call.caller.id)
  return keys.filter(isWorking)
}

function isWorking({ expiresAt }: ApiKey): boolean {
  return expiresAt === null || expiresAt > Date.now()
}

function keyView({ id, label, createdAt, expiresAt }: ApiKey, { caller }: KeyedCall): z.output<typeof keyViewSchema> {
  return {
    id,
    label,
    createdAt: timestamp(createdAt),
    expiresAt: timeOrNull(expiresAt),
    isCurrent: id === caller.keyId,
  }
}
