import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import { type Service, startService } from '../harness.js'

const holding = defineWorkflow({
  id: 'service/holding',
  name: 'Holding',
  description: 'Ends at once, or when it is canceled.',
  params: z.object({ hold: z.boolean() }),
  inputs: [],
  outputs: {},
  stages: [
    {
      name: 'hold',
      async run({ params, progress, signal }) {
        progress(0.5)
        if (params.hold)
          await new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
          )
      },
    },
  ],
})

let service: Service
beforeAll(async () => {
  service = await startService({
    http: { limits: { heartbeatMs: 100 } },
    engine: { dispatch: { concurrency: 1 } },
    workflows: [holding],
  })
})
afterAll(() => service.close())

interface Shown {
  status: string
  queuePosition: number | null
  estimate: { startsAt: string | null; endsAt: string } | null
}

const submit = (hold: boolean) => service.created({ workflow: 'service/holding', name: 'a job', params: { hold } })

const view = async (id: string) => (await (await service.api(`/job/${id}`)).json()) as Shown
const patient = { timeout: 30_000, interval: 20 }
async function until(id: string, status: string): Promise<void> {
  await expect.poll(async () => (await view(id)).status, patient).toBe(status)
}

/** The jobs in the events of a stream, up to the first wanted one. */
async function eventsUntil(id: string, isWanted: (job: Shown) => boolean): Promise<Shown[]> {
  const stop = new AbortController()
  const answer = await service.api(`/job/${id}/events`, { signal: stop.signal })
  const seen: Shown[] = []
  let text = ''
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      if (data !== undefined) seen.push(JSON.parse(data) as Shown)
    }
    if (seen.some(isWanted)) break
  }
  stop.abort()
  return seen
}

test('a job says when it will probably begin and end, once one of its workflow has succeeded', async () => {
  const first = await submit(true)
  await until(first, 'STARTED')
  const early = await submit(false)
  expect(await view(early)).toMatchObject({ status: 'QUEUED', queuePosition: 1, estimate: null })
  // Estimated from its own progress, because no other job has ended.
  await expect
    .poll(async () => (await view(first)).estimate, patient)
    .toEqual({ startsAt: null, endsAt: expect.any(String) })
  await service.api(`/job/${first}/cancel`, { method: 'POST' })
  await until(early, 'SUCCEEDED')
  expect(await view(early)).toMatchObject({ queuePosition: null, estimate: null })
})

test('a waiting job shows how it moves up in its event stream, even if it does not change', async () => {
  const running = await submit(true)
  await until(running, 'STARTED')
  const [before, waiting] = [await submit(false), await submit(false)]
  // Measured values are cached for some seconds.
  const nearer = eventsUntil(waiting, ({ queuePosition, estimate }) => queuePosition === 1 && estimate !== null)
  await expect.poll(async () => (await view(waiting)).queuePosition, patient).toBe(2)
  await service.api(`/job/${before}/cancel`, { method: 'POST' })
  const seen = await nearer
  expect(seen[0]).toMatchObject({ status: 'QUEUED', queuePosition: 2 })
  const { startsAt, endsAt } = seen.at(-1)?.estimate ?? {}
  expect(Date.parse(startsAt ?? '')).toBeLessThanOrEqual(Date.parse(endsAt ?? ''))
  await service.api(`/job/${running}/cancel`, { method: 'POST' })
  await until(waiting, 'SUCCEEDED')
})
