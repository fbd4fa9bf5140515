import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createClient } from '../../../src/client/client.js'
import { newWebhookSecret } from '../../../src/core/engine/webhooks/signature.js'
import { type Service, startService } from '../harness.js'

let status = 500
const received: string[] = []
const receiver = createServer((request, response) => {
  received.push(request.url ?? '')
  request.resume()
  response.writeHead(status).end()
})
let origin: string
let service: Service

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  origin = `http://127.0.0.1:${port}`
  service = await startService({
    engine: {
      fetch: { allow: ['127.0.0.1/32'], ports: [port] },
      webhooks: { secret: newWebhookSecret(), disableAfterMs: 0 },
    },
  })
  service.release()
})
afterAll(async () => {
  await service.close()
  receiver.close()
})

const run = (webhook = { url: `${origin}/hook` }) => service.created({ webhook })

test('an application sees which of its receivers was disabled, hears of it, and enables it again', async () => {
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
  const events = await fetch(`${service.base}/job/events`, { headers: { authorization: service.app.key } })
  let streamed = ''
  const reading = (async () => {
    for await (const chunk of events.body!.pipeThrough(new TextDecoderStream())) streamed += chunk
  })().catch(() => {})
  await vi.waitFor(() => expect(streamed).toContain('event: ready'))
  expect(await client.failingReceivers()).toEqual([])

  for (let n = 0; n < 5; n++) await run()
  await vi.waitFor(async () => expect(await client.failingReceivers()).toMatchObject([{ state: 'disabled' }]), {
    timeout: 15_000,
  })
  const [failing] = await client.failingReceivers()
  expect(failing).toMatchObject({ origin, failures: 5, lastStatus: 500, nextTrialAt: null })
  expect(Date.parse(failing?.failingSince ?? '')).toBeLessThanOrEqual(Date.parse(failing?.disabledAt ?? ''))
  await vi.waitFor(() => expect(streamed).toContain(`event: webhook-receiver\ndata: {"origin":"${origin}"`))

  const other = await service.addApplication('Other')
  const theirs = createClient({ baseUrl: service.base, apiKey: other.key })
  expect(await theirs.failingReceivers()).toEqual([])
  await expect(theirs.enableReceiver(origin)).rejects.toMatchObject({ code: 'NOT_FOUND' })

  status = 204
  await client.enableReceiver(origin)
  expect(await client.failingReceivers()).toEqual([])
  await run({ url: `${origin}/after` })
  await vi.waitFor(() => expect(received).toContain('/after'), { timeout: 15_000 })
  await service.close()
  await reading
})
