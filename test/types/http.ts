import { createEngine } from 'stemwork'
import {
  applicationSecret,
  type Authenticate,
  createApplication,
  createHandler,
  type Handler,
  issueKey,
  revokeKey,
  rotateKey,
  rotateWebhookSecret,
} from 'stemwork/http'
import { expectType } from './expect-type.js'

const engine = createEngine()
const authenticate: Authenticate = (request) => (request.headers.has('cookie') ? { id: 'ann', name: 'Ann' } : undefined)
const handler = createHandler(engine, { basePath: '/v1', authenticate, cors: { origins: ['https://example.org'] } })
expectType<Handler>()(handler)

export async function use(): Promise<void> {
  expectType<Response>()(await handler(new Request('https://example.org/v1/job')))
  const { id, webhookSecrets } = await createApplication(engine.applications, { name: 'Shop' })
  expectType<string | undefined>()(webhookSecrets[0]?.secret)
  const { key, record } = await issueKey(engine.applications, id, { label: 'first' })
  expectType<string>()(key)
  await rotateKey(engine.applications, record.id, { overlapMs: 1000 })
  await revokeKey(engine.applications, record.id)
  expectType<string>()(await rotateWebhookSecret(engine.applications, id, { overlapMs: 1000 }))
  expectType<string>()(applicationSecret('whsec_of the service', id))
  // @ts-expect-error: a key belongs to an application
  await issueKey(engine.applications)
}

// @ts-expect-error: a handler is over an engine
createHandler({})
// @ts-expect-error: who calls has an id
createHandler(engine, { authenticate: () => ({ name: 'Ann' }) })
// @ts-expect-error: no such option
createHandler(engine, { path: '/v1' })
