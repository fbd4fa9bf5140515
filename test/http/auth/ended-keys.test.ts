import { describe, expect, onTestFinished, test } from 'vitest'
import { issueKey, revokeKey } from '../../../src/http/index.js'
import { durableStores } from '../durable-stores.js'
import { type Service, serviceOfTest, type ServiceSettings } from '../harness.js'

for (const [name, open, missing] of durableStores) {
  describe.skipIf(missing !== undefined)(`when a key is revoked, on ${name}${missing ? ` (${missing})` : ''}`, () => {
    async function start(settings: ServiceSettings = {}): Promise<Service> {
      const stores = await open()
      onTestFinished(() => stores.close())
      return serviceOfTest({ stores, ...settings })
    }

    test('its event streams end, long before the next keep-alive, and those of other keys continue', async () => {
      const service = await start({ http: { limits: { heartbeatMs: 3_600_000 } } })
      const second = await issueKey(service.engine.applications, service.app.id)
      const id = await service.created()
      const stream = await service.api(`/job/${id}/events`, { key: second.key })
      const all = await service.api('/job/events', { key: second.key })
      const other = await service.api(`/job/${id}/events`)
      // Another process of the service would do the same.
      await revokeKey(service.engine.applications, second.record.id)
      const [text] = await Promise.all([stream.text(), all.text()])
      expect(text).toContain('event: job')
      // The job still exists: an EventSource that reconnects gets 401.
      expect(text).not.toContain('deleted')
      expect((await service.api(`/job/${id}/events`, { key: second.key })).status).toBe(401)
      service.release()
      expect(await other.text()).toContain('"status":"SUCCEEDED"')
    })

    test('its requests that wait for a job are refused, without news of the job and links to its results', async () => {
      const service = await start()
      const second = await issueKey(service.engine.applications, service.app.id)
      const waiting = (key?: string) => service.submit({}, { key, headers: { prefer: 'wait=30' } })
      const [ended, other] = [waiting(second.key), waiting()]
      await expect.poll(() => service.engine.count({ app: service.app.id })).toBe(2)
      await revokeKey(service.engine.applications, second.record.id)
      const refused = await ended
      expect([refused.status, await refused.json()]).toEqual([401, expect.objectContaining({ code: 'UNAUTHORIZED' })])
      service.release()
      expect(await (await other).json()).toMatchObject({ status: 'SUCCEEDED' })
    })

    test('its upload links end, and those of other keys do not', async () => {
      const service = await start()
      const second = await issueKey(service.engine.applications, service.app.id)
      const ticketOf = async (key?: string) =>
        (await (await service.api('/upload', { key })).json()) as { uploadUrl: string }
      const [ended, good] = [await ticketOf(second.key), await ticketOf()]
      await revokeKey(service.engine.applications, second.record.id)
      const refused = await fetch(ended.uploadUrl, { method: 'PUT', body: 'song' })
      expect([refused.status, await refused.json()]).toEqual([
        403,
        expect.objectContaining({ code: 'FORBIDDEN', message: expect.stringContaining('key') }),
      ])
      expect((await fetch(good.uploadUrl, { method: 'PUT', body: 'song' })).status).toBe(200)
      // Naming another key, or none, does not circumvent the check.
      const without = (await ticketOf()).uploadUrl.replace(/&holder=[^&]+/, '')
      const others = ended.uploadUrl.replace(/holder=[^&]+/, `holder=${/stw_([^_]+)/.exec(service.app.key)?.[1]}`)
      for (const url of [without, others]) expect((await fetch(url, { method: 'PUT', body: 'x' })).status).toBe(403)
    })

    test.each(['to a ticket', 'that could be resumed'])('its uploads %s end, and make no file', async (kind) => {
      const service = await start({ http: { resumableUploads: true } })
      const { key, record } = await issueKey(service.engine.applications, service.app.id)
      const send = (url: string, method: string, headers: Record<string, string>) => {
        let sent = 0
        let isAnswered = false
        // More than the connection holds, so the service is reading it; then without an end.
        const body = new ReadableStream<Uint8Array>({
          async pull(controller) {
            if (sent > 2 ** 25) await new Promise((resolve) => setTimeout(resolve, 20))
            const chunk = new Uint8Array(sent > 2 ** 25 ? 1 : 2 ** 16)
            sent += chunk.byteLength
            if (isAnswered) controller.close()
            else controller.enqueue(chunk)
          },
        })
        const options: RequestInit & { duplex: 'half' } = { method, headers, body, duplex: 'half' }
        return { answer: fetch(url, options).finally(() => (isAnswered = true)), sent: () => sent }
      }
      const tus = { authorization: key, 'tus-resumable': '1.0.0' }
      const begin = async () => {
        const headers = { ...tus, 'upload-length': String(2 ** 29) }
        const { headers: made } = await service.api('/upload/resumable', { method: 'POST', headers })
        const more = { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' }
        return send(made.get('location') ?? '', 'PATCH', { ...tus, ...more })
      }
      const ticket = async () => {
        const made = (await (await service.api('/upload', { key })).json()) as { uploadUrl: string }
        return send(made.uploadUrl, 'PUT', {})
      }
      const { answer, sent } = kind === 'to a ticket' ? await ticket() : await begin()
      await expect.poll(sent).toBeGreaterThan(2 ** 25)
      await revokeKey(service.engine.applications, record.id)
      // What may be resumed keeps what has come; the next request is refused.
      expect((await answer).status).toBe(kind === 'to a ticket' ? 403 : 204)
      for await (const { key: file } of service.engine.blobs.list('uploads/'))
        expect(file).toMatch(/\.(parts|resumable)/)
    })
  })
}
