import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Handler } from '../../src/http/index.js'
import { type RunningServer, serve } from '../../src/http/mounts/node.js'
import type { JobEngine } from '../../src/core/engine/engine.js'
import { type Service, startService } from '../http/harness.js'

/** The npm package `replicate`, unchanged but for its address, with `examples/replicate-api.mjs`. */

interface Example {
  replicateApi(engine: JobEngine, service: Handler, webhookSecret: string, webhookOrigins?: string[]): Handler
}
const path = new URL('../../examples/replicate-api.mjs', import.meta.url)
// Installed by `npm install --prefix test/clients`, which `.ci/run` does.
const hasClient = existsSync(new URL('node_modules/replicate', import.meta.url))

/** The fields used here. */
interface Prediction {
  id: string
  status: string
  urls: { get: string }
}
interface Replicate {
  run(model: string, options: object, progress?: (prediction: Prediction) => void): Promise<unknown>
  predictions: Record<'create', (options: object) => Promise<Prediction>> &
    Record<'get' | 'cancel', (id: string) => Promise<Prediction>>
  webhooks: { default: { secret: { get(): Promise<{ key: string }> } } }
}
interface ReplicatePackage {
  default: new (options: { auth: string; baseUrl: string }) => Replicate
  validateWebhook(request: { headers: object; body: string }, secret: string): Promise<boolean>
}

const model = 'service/stems-vocals-accompaniment'
const held = 'service/held'

let service: Service
let server: RunningServer
let replicate: Replicate
let client: ReplicatePackage
const webhookOrigins: string[] = []
beforeAll(async () => {
  if (!hasClient) return
  const name = 'replicate'
  client = (await import(name)) as ReplicatePackage
  service = await startService()
  const { replicateApi } = (await import(path.href)) as Example
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  server = await serve(replicateApi(service.engine, service.handler, secret, webhookOrigins), { port: 0 })
  replicate = new client.default({ auth: service.app.key, baseUrl: `${server.origin}/v1` })
})
afterAll(async () => {
  if (!hasClient) return
  await server.close({ timeoutMs: 100 })
  await service.close()
})

const input = async () => ({ inputUrl: await service.uploaded(Buffer.from('RIFF')) })

describe.skipIf(!hasClient)('a program written with replicate (skipped without the package)', () => {
  test('runs a model and reads its output: it waits in one request (Prefer: wait)', async () => {
    const output = (await replicate.run(model, { input: await input() })) as Record<string, string>
    expect(Object.keys(output)).toEqual(['vocals', 'accompaniments'])
    expect(await (await fetch(output.vocals!)).text()).toBe('RIFF')
  })

  test('runs it by polling, too, and sees its progress', async () => {
    const seen: string[] = []
    const options = { input: await input(), wait: { mode: 'poll', interval: 20 } }
    await replicate.run(model, options, ({ status }) => seen.push(status))
    expect(seen[0]).toBe('starting')
    expect(seen.at(-1)).toBe('succeeded')
  })

  test('creates by version, gets and cancels', async () => {
    const made = await replicate.predictions.create({ version: held, input: {} })
    expect(made).toMatchObject({ status: 'starting', input: {}, output: null, error: null, urls: {} })
    await expect.poll(async () => (await replicate.predictions.get(made.id)).status).toBe('processing')
    await replicate.predictions.cancel(made.id)
    await expect.poll(async () => (await replicate.predictions.get(made.id)).status).toBe('canceled')
    expect((await fetch(made.urls.get, { headers: { authorization: service.app.key } })).status).toBe(200)
  })

  test('that waits for less time than the work takes continues waiting', async () => {
    const made = await replicate.predictions.create({ version: held, input: {}, wait: 1 })
    expect(made.status).toBe('starting')
    await replicate.predictions.cancel(made.id)
  })

  test('is told what is wrong with its input, its model or its key', async () => {
    await expect(replicate.run(model, { input: { inputUrl: 'x' } })).rejects.toThrow('params.inputUrl')
    await expect(replicate.run('service/none', { input: {} })).rejects.toThrow('There is no workflow')
    const stranger = new client.default({ auth: 'wrong', baseUrl: `${server.origin}/v1` })
    await expect(stranger.predictions.get('x')).rejects.toThrow('The API key is not valid')
    await expect(
      replicate.run(model, { input: { inputUrl: await service.uploaded(Buffer.alloc(0)) } }),
    ).rejects.toThrow('Prediction failed: The file is empty.')
  })

  test('gets signed webhooks for the events that it asked for', async () => {
    const messages: { headers: Record<string, string>; body: string }[] = []
    const receiver = createServer((request, response) => {
      void buffer(request).then((body) => {
        messages.push({ headers: request.headers as Record<string, string>, body: body.toString() })
        response.end()
      })
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => receiver.once('listening', resolve))
    const webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
    webhookOrigins.push(new URL(webhook).origin)
    const { id } = await replicate.predictions.create({ model, input: await input(), webhook })
    await expect.poll(() => messages.length).toBe(2)
    const { key } = await replicate.webhooks.default.secret.get()
    for (const message of messages) expect(await client.validateWebhook(message, key)).toBe(true)
    const last = messages.map(({ body }) => JSON.parse(body) as { id: string; status: string; output: unknown }).at(-1)
    expect(last).toMatchObject({ id, status: 'succeeded', output: { vocals: expect.any(String) } })
    const filtered = { model, input: await input(), webhook, webhook_events_filter: ['completed'] }
    await replicate.predictions.create(filtered)
    await expect.poll(() => messages.length).toBe(3)
    receiver.close()
  })
})

test('a request that is not JSON, or has no key, is refused by the service, not by a failure', async () => {
  const { replicateApi } = (await import(path.href)) as Example
  const plain = await startService()
  onTestFinished(() => plain.close())
  const handler = replicateApi(plain.engine, plain.handler, `whsec_${Buffer.alloc(32, 7).toString('base64')}`)
  const create = (body: string, authorization: string) =>
    handler(new Request(`${plain.base}/predictions`, { method: 'POST', body, headers: { authorization } }))
  for (const body of ['{', 'null', '[]']) {
    const answer = await create(body, plain.app.key)
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { detail: expect.stringContaining('workflow: is missing') },
    ])
  }
  const stranger = await create('{', 'wrong')
  expect(stranger.status).toBe(401)
})

test.each(['http://127.0.0.1:1/', 'file:///tmp/hook', 'hook', 7, 'https://shop.example@127.0.0.1/'])(
  'a webhook to %j, which the operator has not allowed, is refused',
  async (webhook) => {
    const { replicateApi } = (await import(path.href)) as Example
    const plain = await startService()
    onTestFinished(() => plain.close())
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const handler = replicateApi(plain.engine, plain.handler, secret, ['https://shop.example'])
    const body = JSON.stringify({ version: held, input: {}, webhook })
    const headers = { authorization: plain.app.key }
    const answer = await handler(new Request(`${plain.base}/predictions`, { method: 'POST', body, headers }))
    expect([answer.status, await answer.json()]).toEqual([422, { detail: expect.stringContaining('WEBHOOK_ORIGINS') }])
  },
)

test('the example has at most 130 lines', async () => {
  expect((await readFile(path, 'utf8')).trimEnd().split('\n').length).toBeLessThanOrEqual(130)
})
