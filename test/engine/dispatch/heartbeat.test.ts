import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { heartbeatLoop } from '../../../src/core/engine/dispatch/attempt/heartbeat.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobChange } from '../../../src/core/engine/job/transitions.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { gate, recordingLogger } from '../harness.js'

const leaseMs = 3000
const progressIntervalMs = 200
const used = { audioSeconds: 0, bytes: 5, processorSeconds: 2 }
const storageOutageMs = 600_000
const silent = { storageOutageMs, contact: { noteAnswer() {}, noteFailure() {} } }

beforeEach(() => {
  vi.useFakeTimers()
  vi.advanceTimersByTime(storageOutageMs)
})
afterEach(() => void vi.useRealTimers())

/** A heartbeat whose beats the test answers; records each beat with the milliseconds since the start. */
function beating(
  answer?: (change: Beat) => Promise<JobRecord | undefined> | JobRecord | undefined,
  everyMs = progressIntervalMs,
) {
  const job = sampleJob({
    status: 'STARTED',
    token: 7,
    lease: { owner: 'w', token: 7, nonce: 'n', until: leaseMs },
  })
  const startedAt = performance.now()
  const beats: [ms: number, beat: Beat][] = []
  const interrupts: [ms: number, code: string][] = []
  const progressed: JobRecord[] = []
  const contacts: string[] = []
  const { logger, lines } = recordingLogger()
  const now = () => Math.round(performance.now() - startedAt)
  // Tests the store's answers; the contract tests its rules.
  const jobs = {
    apply: async (id: string, change: JobChange) => {
      expect([id, change.kind]).toEqual([job.id, 'heartbeat'])
      beats.push([now(), change as Beat])
      return answer ? answer(change as Beat) : job
    },
  } as unknown as JobStore
  const heartbeat = heartbeatLoop(jobs, job, {
    leaseMs,
    progressIntervalMs: everyMs,
    storageOutageMs,
    used: () => used,
    contact: { noteAnswer: () => void contacts.push('answer'), noteFailure: () => void contacts.push('failure') },
    onProgress: (updated) => progressed.push(updated),
    interrupt: ({ code }) => {
      interrupts.push([now(), code])
      heartbeat.stop()
    },
    logger,
  })
  heartbeat.start()
  return { heartbeat, job, beats, interrupts, progressed, contacts, lines }
}
type Beat = Extract<JobChange, { kind: 'heartbeat' }>

describe('a heartbeat', () => {
  test('renews the lease after a third of it, and sooner if there is progress to write', async () => {
    const { heartbeat, job, beats, progressed } = beating()
    await vi.advanceTimersByTimeAsync(900)
    expect(beats).toEqual([])
    await vi.advanceTimersByTimeAsync(100)
    const beat = { kind: 'heartbeat', token: 7, nonce: 'n', leaseMs, progress: 0, stage: null, used }
    expect(beats).toEqual([[1000, beat]])
    expect(progressed).toEqual([job])
    heartbeat.report({ stage: 'write', progress: 0.5 })
    await vi.advanceTimersByTimeAsync(1000)
    // Values already written are not written again.
    expect(beats.slice(1)).toEqual([[1200, { ...beat, progress: 0.5, stage: 'write' }]])
    await vi.advanceTimersByTimeAsync(200)
    expect(beats.slice(2).map(([ms]) => ms)).toEqual([2200])
  })

  test('comes three times in a lease that is shorter than the interval of progress', async () => {
    const { heartbeat, beats } = beating()
    heartbeat.stop()
    const short = heartbeatLoop(
      { apply: async () => void beats.push([0, {} as Beat]) } as unknown as JobStore,
      sampleJob(),
      {
        ...silent,
        leaseMs: 300,
        progressIntervalMs: 1000,
        used: () => used,
        onProgress() {},
        interrupt() {},
        logger: silentLogger,
      },
    )
    short.start()
    await vi.advanceTimersByTimeAsync(300)
    short.stop()
    expect(beats.length).toBe(3)
  })

  test('comes in the tick that is nearest to a third of the lease', async () => {
    const { beats } = beating(undefined, 400)
    await vi.advanceTimersByTimeAsync(1000)
    expect(beats.map(([ms]) => ms)).toEqual([800])
  })

  test('does not keep the process alive, and leaves no timer when it is stopped', async () => {
    const { heartbeat } = beating()
    heartbeat.stop()
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
    const timersThatDo = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timersThatDo()
    const real = beating()
    expect(timersThatDo()).toBe(before)
    real.heartbeat.stop()
  })

  test('lets the run continue through an outage of ten minutes, and tries with every tick', async () => {
    let isAway = true
    const { interrupts, beats, contacts, lines } = beating(() => {
      if (isAway) throw new Error('the store is away')
      return sampleJob()
    })
    await vi.advanceTimersByTimeAsync(600_000)
    expect(interrupts).toEqual([])
    expect(lines.every(({ level }) => level === 'warn')).toBe(true)
    expect([lines.length, contacts.length]).toEqual([beats.length, beats.length])
    expect(beats.length).toBeGreaterThan(600_000 / progressIntervalMs - 10)
    isAway = false
    await vi.advanceTimersByTimeAsync(progressIntervalMs)
    expect(contacts.slice(-2)).toEqual(['failure', 'answer'])
    expect(interrupts).toEqual([])
  })

  test('ends the run if the store was down for so long that another worker takes the job', async () => {
    const { interrupts } = beating(() => Promise.reject(new Error('the store is away')))
    await vi.advanceTimersByTimeAsync(leaseMs + storageOutageMs - 1)
    expect(interrupts).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(interrupts).toEqual([[leaseMs + storageOutageMs, 'LEASE_LOST']])
    await vi.advanceTimersByTimeAsync(leaseMs)
    expect(interrupts.length).toBe(1)
  })

  test('does not wait for a call that hangs: a third of a lease later comes the next', async () => {
    const { beats, interrupts, contacts } = beating(() =>
      beats.length <= 2 ? new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 30_000)) : sampleJob(),
    )
    await vi.advanceTimersByTimeAsync(4500)
    expect(beats.map(([ms]) => ms)).toEqual([1000, 2000, 3000, 4000])
    // Late answers of the hanging calls change nothing.
    await vi.advanceTimersByTimeAsync(60_000)
    expect(interrupts).toEqual([])
    expect(contacts.filter((contact) => contact === 'failure')).toHaveLength(2)
  })

  test('a lease that is lost ends the run at once, even after an outage', async () => {
    let answer: 'away' | 'lost' = 'away'
    const { interrupts } = beating(() => {
      if (answer === 'away') throw new Error('the store is away')
      return undefined
    })
    await vi.advanceTimersByTimeAsync(5 * leaseMs)
    answer = 'lost'
    await vi.advanceTimersByTimeAsync(progressIntervalMs)
    expect(interrupts).toEqual([[5 * leaseMs + progressIntervalMs, 'LEASE_LOST']])
  })

  test('reports again that work was kept, with the progress, if the heartbeat that reported it failed', async () => {
    const failures = [new Error('the store is away'), new Error('still away')]
    const { heartbeat, beats } = beating(() => {
      const failure = failures.shift()
      if (failure) throw failure
      return sampleJob()
    })
    heartbeat.report({ stage: 'write', progress: 0.5 })
    heartbeat.noteKept()
    await vi.advanceTimersByTimeAsync(4 * progressIntervalMs)
    expect(beats.map(([ms, { kept, progress }]) => [ms, kept, progress])).toEqual([
      [200, true, 0.5],
      [400, true, 0.5],
      [600, true, 0.5],
    ])
    heartbeat.report({ stage: 'write', progress: 0.6 })
    await vi.advanceTimersByTimeAsync(progressIntervalMs)
    expect(beats.at(-1)).toEqual([1000, expect.not.objectContaining({ kept: expect.anything() })])
  })

  test('reports work that was kept during a heartbeat that failed', async () => {
    let fail = (_error: Error) => {}
    const { heartbeat, beats } = beating(() =>
      beats.length === 1 ? new Promise((_, reject) => (fail = reject)) : sampleJob(),
    )
    await vi.advanceTimersByTimeAsync(1000)
    heartbeat.noteKept()
    fail(new Error('the store is away'))
    await vi.advanceTimersByTimeAsync(progressIntervalMs)
    expect(beats.map(([, { kept }]) => kept)).toEqual([undefined, true])
  })

  test('reports kept work at once, without progress', async () => {
    const { heartbeat, beats } = beating()
    heartbeat.noteKept()
    await vi.advanceTimersByTimeAsync(progressIntervalMs)
    expect(beats).toEqual([[200, expect.objectContaining({ kept: true })]])
  })

  test('ends the run when the claim is no longer that of the job, and when a cancel was requested', async () => {
    const lost = beating(() => undefined)
    await vi.advanceTimersByTimeAsync(1000)
    expect(lost.interrupts).toEqual([[1000, 'LEASE_LOST']])
    expect(lost.progressed).toEqual([])
    const canceled = beating(() => sampleJob({ cancelRequested: true }))
    await vi.advanceTimersByTimeAsync(1000)
    expect(canceled.interrupts).toEqual([[1000, 'CANCELED']])
  })

  test('reports nothing once it was stopped, not even an answer that was on its way', async () => {
    const { opened, open } = gate()
    const { heartbeat, interrupts, progressed, beats } = beating(async () => {
      await opened
      return undefined
    })
    await vi.advanceTimersByTimeAsync(1000)
    expect(beats.length).toBe(1)
    heartbeat.stop()
    open()
    await vi.advanceTimersByTimeAsync(2 * leaseMs)
    expect([beats.length, interrupts, progressed]).toEqual([1, [], []])
  })
})
