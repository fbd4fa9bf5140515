import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { requeue, sampleJob } from '../../../src/contract/job-samples.js'
import { applicationShares } from '../../../src/core/engine/dispatch/application-shares.js'
import { claimJobs } from '../../../src/core/engine/dispatch/claim-jobs.js'

/** Many jobs of each application wait; a worker with these shares requests some. */
async function waiting(shares: Parameters<typeof applicationShares>[0], apps: readonly string[]) {
  const jobs = memoryJobs()
  for (let n = 0; n < 20; n++) {
    for (const app of apps) await jobs.create(sampleJob({ app }))
  }
  const worker = applicationShares(shares)
  let asked = 0
  const claim = async (max: number) => {
    const claimed = await worker.claim(max, (claimable, most) => {
      asked++
      return claimJobs(jobs, { owner: 'worker', leaseMs: 60_000, ...claimable }, most)
    })
    return claimed.map(({ app }) => app).join(' ')
  }
  return { claim, asked: () => asked, jobs }
}

describe('applications', () => {
  test('take turns with one job each by default, and are requested in one claim', async () => {
    const { claim, asked } = await waiting({}, ['a', 'b', 'c'])
    expect(await claim(6)).toBe('a b c a b c')
    expect(asked()).toBe(1)
  })

  test('with a weight begin that many jobs in each turn, even if there is room for only one at a time', async () => {
    const { claim } = await waiting({ b: { weight: 3 } }, ['a', 'b', 'c'])
    const order: string[] = []
    for (let n = 0; n < 10; n++) order.push(await claim(1))
    expect(order.join(' ')).toBe('a b b b c a b b b c')
    expect(await claim(5)).toBe('a b b b c')
  })

  test('are requested in one claim if no weight is above 1, and for those with a reservation alone', async () => {
    const { claim, asked } = await waiting({ a: { weight: 1 }, b: { reserved: 0 } }, ['a', 'b', 'c'])
    expect(await claim(4)).toBe('a b c a')
    expect(asked()).toBe(1)
    const shares = applicationShares({ a: { weight: 2 }, b: { reserved: 3 } })
    expect([shares.reservedFor('a'), shares.reservedFor('b'), shares.reservedFor('c')]).toEqual([0, 3, 0])
    expect(shares.reserved).toEqual([{ app: 'b', jobs: 3 }])
  })

  test('with a weight end their turn with their last job, and are not requested again in it', async () => {
    const two = await waiting({ b: { weight: 2 } }, ['b'])
    expect(await two.claim(4)).toBe('b b b b')
    expect(two.asked()).toBe(4)
    const { claim, asked } = await waiting({ b: { weight: 6 } }, ['b'])
    await claim(20)
    const asks: number[] = []
    for (let n = 0; n < 2; n++) {
      const before = asked()
      expect(await claim(1)).toBe('')
      asks.push(asked() - before)
    }
    // Its turn has four jobs left.
    expect(asks).toEqual([2, 1])
  })

  test('are not requested if there is no room, and begin what was granted before a failure', async () => {
    const asked: object[] = []
    const granted = sampleJob({ app: 'a' })
    const shares = applicationShares({ a: { reserved: 2 } })
    const claim = (max: number, ...answers: (ReturnType<typeof sampleJob> | Error)[]) =>
      shares.claim(max, async (claimable) => {
        asked.push(claimable)
        const answer = answers.shift()
        if (answer instanceof Error) throw answer
        return answer ? [answer] : []
      })
    expect(await claim(1, granted)).toEqual([granted])
    expect(asked).toEqual([{ onlyApps: ['a'], belowRunning: 2 }])
    expect(await claim(3, granted, new Error('away'))).toEqual([granted])
    await expect(claim(3, new Error('away'))).rejects.toThrow('away')
  })

  test('with a weight pass their turn on when they have no more jobs', async () => {
    const { claim } = await waiting({ b: { weight: 30 } }, ['a', 'b'])
    expect(await claim(23)).toBe(`a ${'b '.repeat(20)}a a`)
  })

  test('with a reservation come first until as many of their jobs run, and then take turns', async () => {
    const { claim, jobs } = await waiting({ c: { reserved: 2 } }, ['a', 'b', 'c'])
    expect(await claim(1)).toBe('c')
    expect(await claim(4)).toBe('c a b c')
    const running = await jobs.list({ app: 'c', statuses: ['STARTED'], limit: 2 })
    for (const { id, token } of running) await jobs.apply(id, requeue(token))
    expect(await claim(1)).toBe('c')
    expect(await claim(1)).toBe('a')
  })
})
