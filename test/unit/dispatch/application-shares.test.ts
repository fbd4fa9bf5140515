import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { requeue, sampleJob } from '../../../src/contract/job-samples.js'
import { ApplicationShares } from '../../../src/core/engine/dispatch/application-shares.js'
import { claimJobs } from '../../../src/core/engine/dispatch/claim-jobs.js'

/** Many jobs of each application wait; a worker with these shares asks for some. */
async function waiting(shares: ConstructorParameters<typeof ApplicationShares>[0], apps: readonly string[]) {
  const jobs = memoryJobs()
  for (let n = 0; n < 20; n++) {
    for (const app of apps) await jobs.create(sampleJob({ app }))
  }
  const worker = new ApplicationShares(shares)
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
  test('take turns with one job each where nothing else is said, and are asked for once', async () => {
    const { claim, asked } = await waiting({}, ['a', 'b', 'c'])
    expect(await claim(6)).toBe('a b c a b c')
    expect(asked()).toBe(1)
  })

  test('with a weight begin as many jobs in each turn, also where there is room for one at a time', async () => {
    const { claim } = await waiting({ b: { weight: 3 } }, ['a', 'b', 'c'])
    const order: string[] = []
    for (let n = 0; n < 10; n++) order.push(await claim(1))
    expect(order.join(' ')).toBe('a b b b c a b b b c')
    expect(await claim(5)).toBe('a b b b c')
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
