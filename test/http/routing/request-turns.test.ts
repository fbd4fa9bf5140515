import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Handler } from '../../../src/http/index.js'
import { type Service, serviceOfTest, startService } from '../harness.js'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

/** The largest number of twenty requests that are answered in one pass of the event loop. */
async function mostInOnePass(handler: Handler, request: () => Request, status: number): Promise<number> {
  const inPass = [0]
  let isOver = false
  const answers = Array.from({ length: 20 }, async () => {
    const answer = await handler(request())
    inPass[inPass.length - 1]! += 1
    await answer.body?.cancel()
    return answer.status
  })
  const all = Promise.all(answers).finally(() => (isOver = true))
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve))
    inPass.push(0)
  }
  expect(new Set(await all)).toEqual(new Set([status]))
  return Math.max(...inPass)
}

test.each<Record<string, string>>([{}, { prefer: 'wait=60' }])(
  'requests that are refused keep their turn to the end of the pass, with the headers %o',
  async (headers) => {
    const { base, handler, app } = await serviceOfTest()
    for (const path of [`/job/${crypto.randomUUID()}`, '/jobs']) {
      const absent = () => new Request(base + path, { headers: { authorization: app.key, ...headers } })
      expect(await mostInOnePass(handler, absent, 404)).toBeLessThanOrEqual(4)
    }
  },
)

describe('while passes of the event loop are long, an application that asks more than another', () => {
  const ticketOf = async (key: string) => {
    const answer = await service.handler(new Request(`${service.base}/upload`, { headers: { authorization: key } }))
    return ((await answer.json()) as { uploadUrl: string }).uploadUrl
  }
  const longPasses = async (count: number, isOver = () => false) => {
    for (let n = 0; n < count && !isOver(); n++) {
      vi.advanceTimersByTime(3)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  /** Makes passes long, which the turns learn from requests. */
  const begunLongPasses = async () => {
    for (let n = 0; n < 3; n++) {
      void ticketOf(seldom.key)
      await longPasses(1)
    }
  }
  let often: string
  let seldom: { id: string; key: string }

  beforeAll(async () => {
    often = (await service.addApplication('often')).key
    seldom = await service.addApplication('seldom')
    for (let n = 0; n < 100; n++) await ticketOf(often)
  })
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  test('waits for an upload of the other', async () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const url = await ticketOf(seldom.key)
    const upload = service.handler(new Request(url, { method: 'PUT', body: readable, duplex: 'half' }))
    await begunLongPasses()
    let isAnswered = false
    const asked = ticketOf(often).then(() => (isAnswered = true))
    await longPasses(4)
    expect(isAnswered).toBe(false)
    await writable.close()
    expect((await upload).status).toBe(200)
    await longPasses(4, () => isAnswered)
    expect(isAnswered).toBe(true)
    await asked
  })

  test('does not wait for a request of the other that waits for a job', async () => {
    const { job } = await service.engine.submit({ app: seldom.id, workflow: 'service/held', params: {} })
    const headers = { authorization: seldom.key, prefer: 'wait=60' }
    const stop = new AbortController()
    const waiting = service.handler(new Request(`${service.base}/job/${job.id}`, { headers, signal: stop.signal }))
    await begunLongPasses()
    let isAnswered = false
    const asked = ticketOf(often).then(() => (isAnswered = true))
    await longPasses(4, () => isAnswered)
    expect(isAnswered).toBe(true)
    stop.abort()
    await Promise.allSettled([asked, waiting])
  })
})
