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
  })
}
