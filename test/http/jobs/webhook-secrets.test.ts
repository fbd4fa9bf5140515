import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newWebhookSecret } from '../../../src/core/engine/webhooks/signature.js'
import { applicationSecret, createApplication, issueKey, rotateWebhookSecret } from '../../../src/http/index.js'
import { durableStores } from '../durable-stores.js'
import { type Service, serviceOfTest } from '../harness.js'

interface Message {
  headers: IncomingHttpHeaders
  body: string
}

for (const [name, open, missing] of durableStores) {
  describe.skipIf(missing !== undefined)(`webhook secrets on ${name}${missing ? ` (${missing})` : ''}`, () => {
    /** A service, with a function that returns a receiver's message about the end of an application's job. */
    async function start(serviceSecret?: string): Promise<Service & { message(key: string): Promise<Message> }> {
      const received: Message[] = []
      const receiver = createServer((request, response) => {
        let body = ''
        request.on('data', (chunk) => (body += String(chunk)))
        request.on('end', () => {
          received.push({ headers: request.headers, body })
          response.end()
        })
      })
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => (receiver.closeAllConnections(), void receiver.close()))
      const { port } = receiver.address() as AddressInfo
      const stores = await open()
      onTestFinished(() => stores.close())
      const fetchPolicy = { allow: ['127.0.0.1/32'], ports: [port] }
      const service = await serviceOfTest({
        stores,
        engine: { fetch: fetchPolicy, ...(serviceSecret ? { webhooks: { secret: serviceSecret } } : {}) },
      })
      service.release()
      return {
        ...service,
        async message(key) {
          const webhook = { url: `http://127.0.0.1:${port}/hook` }
          await service.created({ webhook }, { key })
          await expect.poll(() => received.length, { timeout: 15_000 }).toBe(1)
          return received.splice(0)[0]!
        },
      }
    }

    const verifies = ({ headers, body }: Message, secret: string): boolean => {
      try {
        return new Webhook(secret).verify(body, headers as Record<string, string>) !== undefined
      } catch {
        return false
      }
    }

    test('belong to one application each: the secret of one verifies no message of another', async () => {
      const serviceSecret = newWebhookSecret()
      const service = await start(serviceSecret)
      const { applications } = service.engine
      const made = await Promise.all(['A', 'B'].map((one) => createApplication(applications, { name: one })))
      const secrets = made.map(({ webhookSecrets }) => webhookSecrets[0]!.secret)
      for (const [index, { id }] of made.entries()) {
        const message = await service.message((await issueKey(applications, id)).key)
        expect(secrets.map((secret) => verifies(message, secret))).toEqual([index === 0, index === 1])
        expect(verifies(message, serviceSecret)).toBe(false)
      }
    })

    test('are derived from that of the service for applications of an earlier version', async () => {
      const serviceSecret = newWebhookSecret()
      const service = await start(serviceSecret)
      const { applications } = service.engine
      await applications.putApplication({ id: 'old', name: 'Old', createdAt: 1, webhook: null })
      const message = await service.message((await issueKey(applications, 'old')).key)
      const known = [applicationSecret(serviceSecret, 'old'), applicationSecret(serviceSecret, 'new'), serviceSecret]
      expect(known.map((secret) => verifies(message, secret))).toEqual([true, false, false])
    })

    test('are rotated over the interface, shown once, and sign side by side during the overlap', async () => {
      const service = await start()
      const { applications } = service.engine
      const first = (await applications.getApplication(service.app.id))?.webhookSecrets?.[0]!.secret ?? ''
      const rotate = async (body: object) =>
        service.api('/application/webhook-secret', { method: 'POST', body: JSON.stringify(body) })
      const answer = await rotate({})
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
      const { secret: second } = (await answer.json()) as { secret: string }
      expect(await (await service.api('/application')).text()).not.toContain(second)
      const during = await service.message(service.app.key)
      expect([first, second].map((secret) => verifies(during, secret))).toEqual([true, true])

      const third = newWebhookSecret()
      expect(await (await rotate({ secret: third, overlapSeconds: 0 })).json()).toEqual({ secret: third })
      const after = await service.message(service.app.key)
      expect([first, second, third].map((secret) => verifies(after, secret))).toEqual([false, false, true])
      expect((await rotate({ secret: 'whsec_short' })).status).toBe(400)
    })

    test('are at most four at a time, however often they are rotated', async () => {
      const service = await start()
      for (let round = 0; round < 10; round++) await rotateWebhookSecret(service.engine.applications, service.app.id)
      const { headers } = await service.message(service.app.key)
      expect(String(headers['webhook-signature']).split(' ')).toHaveLength(4)
    })
  })
}

test('an application that the service does not keep has no secret to rotate, and nothing to sign with', async () => {
  const service = await serviceOfTest({ http: { authenticate: () => ({ id: 'host', name: 'Host' }) } })
  const rotated = await service.api('/application/webhook-secret', { method: 'POST', body: '{}' })
  expect(rotated.status).toBe(404)
  const created = await service.submit({ webhook: { url: 'https://example.com/hook' } })
  expect([created.status, await created.json()]).toEqual([
    400,
    expect.objectContaining({ errors: [expect.objectContaining({ path: 'webhook' })] }),
  ])
})
