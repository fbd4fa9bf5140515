import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { createClient, type Job } from '../../../src/client/client.js'
import { pollJob, type Service, serviceOfTest, startService } from '../harness.js'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

function follow(of: Service, key = of.app.key) {
  const stop = new AbortController()
  const seen: string[] = []
  const states: string[] = []
  const ended = createClient({ baseUrl: of.base, apiKey: key })
    .followJobs({
      signal: stop.signal,
      onJob: (job: Job) => seen.push(`${job.name} ${job.status}`),
      onDeleted: (id) => seen.push(`deleted ${id}`),
      onState: (state) => states.push(state),
    })
    .catch((error: unknown) => error)
  return { seen, states, ended, stop: () => stop.abort(new Error('stopped')) }
}

describe('the event stream of all jobs', () => {
  test('reports every change of the application, and no other', async () => {
    const other = await service.addApplication('Other')
    const [mine, theirs] = [follow(service), follow(service, other.key)]
    await vi.waitFor(() => expect([...mine.states, ...theirs.states]).toEqual(['connected', 'connected']))
    const id = await service.created({ name: 'a' })
    await vi.waitFor(() => expect(mine.seen).toContain('a STARTED'))
    service.release()
    await vi.waitFor(() => expect(mine.seen.at(-1)).toBe('a SUCCEEDED'))
    await service.api(`/job/${id}`, { method: 'DELETE' })
    await vi.waitFor(() => expect(mine.seen.at(-1)).toBe(`deleted ${id}`))
    expect(mine.seen[0]).toBe('a QUEUED')
    expect(theirs.seen).toEqual([])
    mine.stop()
    theirs.stop()
    await expect(mine.ended).resolves.toMatchObject({ message: 'stopped' })
  })

  test('reports what another process does to the jobs of a shared store', async () => {
    const shared = { stores: { jobs: memoryJobs() }, blobs: memoryBlobs(), worker: false }
    const [here, there] = [await startService(shared), await startService(shared)]
    const { seen, states, stop } = follow(here)
    await vi.waitFor(() => expect(states).toEqual(['connected']))
    const { job } = await there.engine.submit({ app: here.app.id, workflow: 'service/held', params: {}, name: 'b' })
    await vi.waitFor(() => expect(seen).toEqual(['b QUEUED']), { timeout: 10_000 })
    await there.engine.cancel(job.id)
    await vi.waitFor(() => expect(seen.at(-1)).toBe('b FAILED'), { timeout: 10_000 })
    await there.engine.delete(job.id)
    await vi.waitFor(() => expect(seen.at(-1)).toBe(`deleted ${job.id}`), { timeout: 10_000 })
    stop()
    await Promise.all([here.close(), there.close()])
  })

  test('costs the store no more for a hundred followers than for one, and writes each change once', async () => {
    const jobs = memoryJobs()
    const list = vi.spyOn(jobs, 'list')
    const many = await serviceOfTest({ stores: { jobs } })
    const estimate = vi.spyOn(many.engine, 'estimate')
    const before = await many.created({ name: 'before' })
    await many.engine.cancel(before)
    await pollJob(many, before)
    const followers = Array.from({ length: 100 }, () => follow(many))
    await vi.waitFor(() => expect(followers.filter(({ states }) => states.length > 0)).toHaveLength(100), {
      timeout: 10_000,
    })
    // If each follower read the two lists itself, there would be more calls.
    expect(list.mock.calls.length).toBeLessThan(100)
    estimate.mockClear()
    await many.created({ name: 'a' })
    await vi.waitFor(() => expect(followers.every(({ seen }) => seen.includes('a STARTED'))).toBe(true), {
      timeout: 10_000,
    })
    expect(estimate.mock.calls.length).toBeLessThan(20)
    expect(followers.some(({ seen }) => seen.some((line) => line.startsWith('before')))).toBe(false)
    for (const { stop } of followers) stop()
  })

  test.each(['/job/events', '/job/:id/events'])('of %s is written in turns', async (path) => {
    const busy = await serviceOfTest()
    const { port } = busy.server
    const id = await busy.created({ name: 'held' })
    const follow = (n: number) => {
      // Links in the events begin with the address that the client requested.
      const headers = { authorization: busy.app.key, host: `service-${n}.example` }
      return request({ port, path: `/v1${path.replace(':id', id)}`, headers, agent: false }).end()
    }
    const followers = Array.from({ length: 50 }, (_, n) => follow(n))
    const answers = await Promise.all(followers.map(async (one) => (await once(one, 'response'))[0] as IncomingMessage))
    await Promise.all(answers.map((answer) => once(answer, 'data')))
    let [pass, written] = [0, 0]
    const passes: number[] = []
    const counted = () => {
      pass++
      next = setImmediate(counted)
    }
    let next = setImmediate(counted)
    // Called once for each view of a job.
    const maxAttempts = busy.engine.maxAttempts.bind(busy.engine)
    vi.spyOn(busy.engine, 'maxAttempts').mockImplementation((job) => {
      passes[pass] = (passes[pass] ?? 0) + 1
      written++
      return maxAttempts(job)
    })
    for (const answer of answers) answer.resume()
    busy.release()
    await vi.waitFor(() => expect(written).toBeGreaterThanOrEqual(50), { timeout: 10_000 })
    clearImmediate(next)
    expect(Math.max(...passes.filter(Boolean))).toBeLessThan(10)
    for (const one of followers) one.destroy()
  })

  test('ends for the application that follows most, where others have none', async () => {
    const few = await serviceOfTest({ http: { limits: { allWaitingRequests: 3 } } })
    const other = await few.addApplication('Other')
    const mine = [follow(few), follow(few), follow(few)]
    await vi.waitFor(() => expect(mine.flatMap(({ states }) => states)).toHaveLength(3))
    const theirs = follow(few, other.key)
    await vi.waitFor(() => expect(theirs.states).toEqual(['connected']))
    await vi.waitFor(() => expect(mine.filter(({ states }) => states.includes('reconnecting'))).toHaveLength(1))
    for (const { stop } of [...mine, theirs]) stop()
  })

  test('reconnects after the service was down, and says so', async () => {
    const first = await serviceOfTest()
    const { states, stop } = follow(first)
    await vi.waitFor(() => expect(states).toEqual(['connected']))
    first.server.server.closeAllConnections()
    await vi.waitFor(() => expect(states).toEqual(['connected', 'reconnecting', 'connected']), { timeout: 10_000 })
    stop()
  })

  test('ends for a key that is refused', async () => {
    const { ended } = follow(service, 'stw_nobody')
    await expect(ended).resolves.toMatchObject({ code: 'UNAUTHORIZED' })
  })
})
