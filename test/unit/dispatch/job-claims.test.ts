import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { claimJobs } from '../../../src/core/engine/dispatch/claim-jobs.js'
import { JobClaims } from '../../../src/core/engine/dispatch/job-claims.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'

const leaseMs = 3000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  vi.advanceTimersByTime(10 * leaseMs)
})
afterEach(() => void vi.useRealTimers())

/** Claims of a worker with these labels that runs jobs of these pools; the store answers after `answerMs`. */
function claimsWith({
  scope = 'shared',
  labels = ['gpu'],
  pools = [],
  isSteady = false,
  becomesSteady = false,
  found = [],
  lapsed = [],
  lost = [],
  answerMs = 0,
}: {
  scope?: 'process' | 'shared'
  labels?: string[]
  pools?: string[]
  isSteady?: boolean
  becomesSteady?: boolean
  found?: JobRecord[] | Error
  lapsed?: JobRecord[]
  lost?: JobRecord[]
  answerMs?: number
} = {}) {
  const asked: unknown[] = []
  const noted: string[] = []
  const answer = () => {
    vi.advanceTimersByTime(answerMs)
    if (found instanceof Error) throw found
    return found
  }
  const jobs = {
    traits: { scope },
    claim: async (request: object) => (asked.push(request), answer()[0]),
    claimSeveral: async (request: object, { max }: { max: number }) => (asked.push(request, max), answer()),
    due: async (...args: unknown[]) => (asked.push(args), lapsed),
    async apply(id: string, change: object) {
      asked.push([id, change])
      return lost.some((job) => job.id === id) ? undefined : sampleJob({ id })
    },
  }
  const contact = {
    isSteady,
    lapsedBefore: async () => 77,
    noteAnswer() {
      noted.push('answer')
      contact.isSteady ||= becomesSteady
    },
    noteFailure: () => void noted.push('failure'),
  }
  const claims = new JobClaims({
    jobs,
    contact,
    options: { dispatch: { labels, leaseMs } },
    runnable: () => ['service/sample'],
    owner: 'me',
    running: new Map(pools.map((pool, index) => [String(index), { pool }])),
  } as unknown as ConstructorParameters<typeof JobClaims>[0])
  return { claims, asked, noted }
}

const nonce = expect.stringMatching(/^[0-9a-f]{12}$/) as string
const own = { labels: ['gpu'], owner: 'me', leaseMs, nonce, lapsedBefore: 77 }

describe('a worker asks the store', () => {
  test('for the named job, or for the next of its workflows, by its name and with a nonce of its own', async () => {
    const job = sampleJob()
    const { claims, asked, noted } = claimsWith({ found: [job] })
    expect(await claims.named(job.id)).toBe(job)
    expect(await claims.next(3, { exceptApps: ['a'] })).toEqual([job])
    expect(asked).toEqual([{ id: job.id, ...own }, { exceptApps: ['a'], workflows: ['service/sample'], ...own }, 3])
    expect(noted).toEqual(['answer', 'answer'])
    expect(await claimsWith().claims.named('gone')).toBeUndefined()
  })

  test('with the labels that running jobs leave it, and then for one job at a time', async () => {
    const { claims, asked } = claimsWith({ labels: ['gpu', 'memory=4'], pools: ['memory=2'] })
    await claims.next(1, {})
    expect(asked[0]).toMatchObject({ labels: ['gpu', 'memory=1', 'memory=2'] })
    expect([claims.atOnce(5), claimsWith().claims.atOnce(5)]).toEqual([1, 5])
  })

  test('and notes it if the store does not answer', async () => {
    const { claims, noted } = claimsWith({ found: new Error('away') })
    await expect(claims.next(1, {})).rejects.toThrow('away')
    expect(noted).toEqual(['failure'])
  })

  test.each([
    ['process', [], undefined],
    ['process', [''], 77],
    ['shared', [], 77],
  ] as const)(
    'in a store of scope %s and with %j running, for leases that ended before %s',
    async (scope, pools, at) => {
      const { claims, asked } = claimsWith({ scope, pools: [...pools] })
      await claims.next(1, {})
      expect(asked[0]).toMatchObject({ lapsedBefore: at })
    },
  )

  test('again for each job of which it hears after a whole lease: another worker may have it', async () => {
    const lease = { owner: 'me', token: 4, nonce: 'n', until: 1 }
    const found = [sampleJob({ token: 4, lease }), sampleJob()]
    const quick = claimsWith({ found, answerMs: leaseMs - 1 })
    expect(await quick.claims.next(2, {})).toEqual(found)
    expect(quick.asked).toHaveLength(2)
    const late = claimsWith({ found, lost: found.slice(1), answerMs: leaseMs })
    expect((await late.claims.next(2, {})).map(({ id }) => id)).toEqual([found[0]?.id])
    const renewal = { kind: 'heartbeat', leaseMs, progress: 0, stage: null }
    expect(late.asked.slice(2)).toEqual([
      [found[0]?.id, { ...renewal, token: 4, nonce: 'n' }],
      [found[1]?.id, { ...renewal, token: 0, nonce: undefined }],
    ])
  })

  test('whether it can run jobs of lost workers that the last claim could not judge', async () => {
    const lapsed = [sampleJob()]
    const { claims, asked } = claimsWith({ lapsed })
    expect(await claims.hasUnjudged()).toBe(true)
    expect(asked).toEqual([['lapsed', 100]])
    const unjudged = async (given: Parameters<typeof claimsWith>[0]) => {
      const worker = claimsWith(given)
      await worker.claims.next(1, {})
      return worker.claims.hasUnjudged()
    }
    expect(await unjudged({ lapsed })).toBe(true)
    expect(await unjudged({ lapsed, becomesSteady: true })).toBe(true)
    expect(await unjudged({})).toBe(false)
    expect(await unjudged({ lapsed, isSteady: true })).toBe(false)
    expect(await unjudged({ lapsed, scope: 'process' })).toBe(false)
    expect(await unjudged({ lapsed, scope: 'process', pools: [''] })).toBe(true)
    expect(await unjudged({ lapsed: [sampleJob({ workflow: 'service/other' })] })).toBe(false)
    expect(await unjudged({ lapsed: [sampleJob({ pool: 'tpu' }), sampleJob({ pool: 'gpu' })] })).toBe(true)
    expect(await unjudged({ lapsed: [sampleJob({ pool: 'tpu' })] })).toBe(false)
  })
})

describe('a store that claims one job at a time', () => {
  const jobs = [sampleJob(), sampleJob(), sampleJob()]
  /** A store that gives these jobs, one after another. */
  const claimed = (answers: (JobRecord | Error)[], max: number) => {
    const left = [...answers]
    const claim = async () => {
      const answer = left.shift()
      if (answer instanceof Error) throw answer
      return answer
    }
    return claimJobs({ claim } as unknown as JobStore, { owner: 'me', leaseMs }, max)
  }

  test('is called until it has none, or there are enough', async () => {
    expect(await claimed(jobs, 5)).toEqual(jobs)
    expect(await claimed(jobs, 2)).toEqual(jobs.slice(0, 2))
    expect(await claimed(jobs, 0)).toEqual([])
  })

  test('has granted what it granted before it failed', async () => {
    expect(await claimed([...jobs.slice(0, 1), new Error('away')], 3)).toEqual(jobs.slice(0, 1))
    await expect(claimed([new Error('away')], 3)).rejects.toThrow('away')
  })
})
