import { expect, test } from 'vitest'
import { createClient } from '../../../src/client/client.js'
import { serviceOfTest } from '../harness.js'

test('a failed job is run again by POST /job/{id}/retry; others are refused; other applications get 404', async () => {
  const service = await serviceOfTest({ worker: false })
  const client = createClient({ baseUrl: service.base, apiKey: service.app.key })
  const { id } = await client.createJob({ workflow: 'service/held', params: {} })
  const retry = async (key?: string, path: string = id) => {
    const answer = await service.api(`/job/${path}/retry`, { method: 'POST', key })
    return [answer.status, ((await answer.json()) as { code?: string; status?: unknown }).code]
  }
  expect(await retry()).toEqual([409, 'CONFLICT'])
  await client.cancelJob(id)
  const stranger = await service.addApplication('Other')
  expect(await retry(stranger.key)).toEqual([404, 'NOT_FOUND'])
  expect(await retry(undefined, 'x')).toEqual([404, 'NOT_FOUND'])
  expect(await client.retryJob(id)).toMatchObject({ id, status: 'QUEUED', error: null, completedAt: null })

  const inputUrl = await service.uploaded(Buffer.from('a song'))
  const other = await client.createJob({ workflow: 'service/stems-vocals-accompaniment', params: { inputUrl } })
  await client.cancelJob(other.id)
  await service.engine.blobs.deletePrefix('uploads/')
  expect(await retry(undefined, other.id)).toEqual([410, 'GONE'])
})
