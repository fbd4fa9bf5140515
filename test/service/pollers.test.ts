import { expect, test } from 'vitest'
import { createApplication, createHandler, issueKey } from '../../src/http/index.js'
import { serve } from '../../src/http/mounts/node.js'
import { wavFile } from '../separation/wav-file.js'
import { startStemsService } from './stems-service.js'

test('500 clients poll at once while a song is separated: each is answered, and the song is done', async () => {
  const song = wavFile({ tag: 1, bits: 16, data: Buffer.alloc(16 * 4 * 44_100, 1) })
  // The same priority as the clients, which take all the CPU time that they can get.
  const settings = { dispatch: { niceness: 0 } }
  const service = await startStemsService((_request, response) => void response.end(song), settings)
  const { id: app } = await createApplication(service.engine.applications, { name: 'app' })
  const { key } = await issueKey(service.engine.applications, app)
  const server = await serve(createHandler(service.engine, { basePath: '/v1', rateLimits: { status: false } }), {
    port: 0,
  })
  const { job } = await service.engine.submit({
    app,
    workflow: 'service/stems-vocals-accompaniment',
    params: { inputUrl: `${service.files}/song.wav` },
  })

  const answers = new Map<number, number>()
  let sawItRunning = false
  await Promise.all(
    Array.from({ length: 500 }, async () => {
      for (let status = ''; status !== 'SUCCEEDED' && status !== 'FAILED';) {
        const response = await fetch(`${server.origin}/v1/job/${job.id}/status`, { headers: { authorization: key } })
        answers.set(response.status, (answers.get(response.status) ?? 0) + 1)
        ;({ status } = (await response.json()) as { status: string })
        sawItRunning ||= status === 'STARTED'
      }
    }),
  )
  expect([...answers.keys()]).toEqual([200])
  expect(answers.get(200)).toBeGreaterThan(1000)
  expect(sawItRunning).toBe(true)
  expect(await service.engine.get(job.id)).toMatchObject({ status: 'SUCCEEDED' })
  await server.close({ timeoutMs: 0 })
  await service.close()
})
