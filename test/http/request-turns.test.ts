import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from './harness.js'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

/** The most requests of twenty that are answered in one pass of the event loop. */
async function mostInOnePass(request: () => Request, status: number): Promise<number> {
  const inPass = [0]
  let isOver = false
  const answers = Array.from({ length: 20 }, async () => {
    const answer = await service.handler(request())
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

test('requests that are refused keep their turn to the end of the pass', async () => {
  const headers = { authorization: service.app.key }
  const absent = () => new Request(`${service.base}/job/${crypto.randomUUID()}`, { headers })
  expect(await mostInOnePass(absent, 404)).toBeLessThanOrEqual(4)
})

test('downloads hold a turn only while their link is checked', async () => {
  const url = await service.uploaded(Buffer.from('a song'))
  const download = () => new Request(url)
  const most: number[] = []
  // Only so many begin in one pass as do within a millisecond, which other programs may take away.
  for (let round = 0; round < 10; round++) most.push(await mostInOnePass(download, 200))
  expect(Math.max(...most)).toBeGreaterThan(4)
})
