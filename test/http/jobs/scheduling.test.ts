import { describe, expect, onTestFinished, test } from 'vitest'
import { durableStores } from '../durable-stores.js'
import { type Service, serviceOfTest } from '../harness.js'

for (const [name, open, missing] of durableStores) {
  describe.skipIf(missing !== undefined)(`scheduling over HTTP, on ${name}${missing ? ` (${missing})` : ''}`, () => {
    async function start(): Promise<Service> {
      const stores = await open()
      onTestFinished(() => stores.close())
      return serviceOfTest({ stores })
    }

    test('a job has a priority, a time before which it waits, a deadline and a position in the queue', async () => {
      const service = await start()
      await service.engine.schedule({ kind: 'deployment' }, { state: 'paused' })
      const get = async (id: string) => (await (await service.api(`/job/${id}`)).json()) as Record<string, unknown>
      const notBefore = '2100-01-01T00:00:00.000Z'
      const deadline = '2100-01-02T00:00:00.000Z'
      const usual = await service.created()
      const urgent = await service.created({ priority: 2 })
      const delayed = await service.created({ notBefore, deadline })
      expect(await get(usual)).toMatchObject({ priority: 0, notBefore: null, deadline: null, queuePosition: 2 })
      expect(await get(urgent)).toMatchObject({ priority: 2, queuePosition: 1 })
      expect(await get(delayed)).toMatchObject({ status: 'QUEUED', notBefore, deadline, queuePosition: null })
      service.release()
    })

    test('values out of range are refused by name, and a service that drains says when to come back', async () => {
      const service = await start()
      for (const [path, value] of [
        ['priority', 3],
        ['notBefore', 'soon'],
        ['deadline', '2001-01-01T00:00:00Z'],
      ] as const) {
        const answer = await service.submit({ [path]: value })
        expect([answer.status, await answer.json()]).toEqual([
          400,
          expect.objectContaining({ code: 'BAD_INPUT', errors: [expect.objectContaining({ path })] }),
        ])
      }
      await service.engine.schedule({ kind: 'deployment' }, { state: 'draining' })
      const refused = await service.submit()
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '60'])
      expect(await refused.json()).toMatchObject({ code: 'DRAINING' })
    })
  })
}
