import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { jobError } from '../../../src/core/engine/job/failure.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { JobEvents } from '../../../src/core/engine/events.js'
import type { EngineSettings } from '../../../src/core/engine/options.js'
import { StoreClock } from '../../../src/core/engine/store-clock.js'
import { messageSender } from '../../../src/core/engine/webhooks/message-sender.js'
import { webhookOutbox } from '../../../src/core/engine/webhooks/outbox.js'
import type { postMessage } from '../../../src/core/engine/webhooks/post-message.js'
import { recordingLogger, testEngine, textWorkflow } from '../../engine/harness.js'
import { resumeTime, stopTime } from '../../engine/stopped-time.js'

beforeEach(() => stopTime())
afterEach(() => resumeTime())

/** An outbox whose requests are function calls: a thousand receivers that are silent for 15 s each would take hours. */
function outbox(answer: (url: string) => number | null, webhooks: EngineSettings['webhooks'] = {}) {
  const jobs = memoryJobs()
  const { logger } = recordingLogger()
  const { options } = testEngine(textWorkflow(), { webhooks }).engine
  const requests: { app: string; url: string; at: number }[] = []
  /** A receiver without an answer is silent until the request times out. */
  const post: typeof postMessage = async ({ app, delivery }, _ports, signal) => {
    const { url } = delivery
    requests.push({ app, url, at: Date.now() })
    const status = answer(url)
    if (status !== null) return status
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(null), options.webhooks.timeoutMs)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        resolve(null)
      })
    })
  }
  const applications = testEngine(textWorkflow()).parts.applications
  const sender = messageSender(
    { jobs, clock: new StoreClock(jobs), applications, events: new JobEvents(logger), options, logger },
    post,
  )
  const all = webhookOutbox({ jobs, sender, logger })
  return {
    all,
    jobs,
    sender,
    requests,
    /** Ends a job whose message is sent to this receiver. */
    async add(app: string, url: string) {
      const { job } = await jobs.create(sampleJob({ app }))
      const error = jobError(new StemworkError('CANCELED', 'canceled'))
      const messages = [{ id: `msg-${job.id}`, url, event: 'job.failed' }]
      await jobs.apply(job.id, { kind: 'cancel', error, retentionMs: 1e12, messages })
      return job.id
    },
    delivery: async (id: string) => (await jobs.get(id))?.deliveries[0],
  }
}

const second = 1000
const minute = 60 * second

describe('webhook messages', () => {
  test('to 1,000 dead receivers of 100 applications delay those of another by less than a second', async () => {
    const { all, add, requests, sender } = outbox((url) => (url.includes('dead') ? null : 204), {
      timeoutMs: 3 * second,
    })
    for (let n = 0; n < 5000; n++) await add(`bad-${n % 100}`, `https://dead-${n % 1000}.example.com/`)
    void all.send()
    const delays: number[] = []
    for (let n = 0; n < 100; n++) {
      const url = `https://example.com/${n}`
      await add('good', url)
      const addedAt = Date.now()
      void all.send()
      // In pieces, because the outbox also needs passes of the event loop, of which a second has many.
      for (let piece = 0; piece < 10; piece++) await vi.advanceTimersByTimeAsync(second / 10)
      delays.push((requests.find((request) => request.url === url)?.at ?? Infinity) - addedAt)
    }
    delays.sort((one, other) => one - other)
    expect(delays[Math.floor(delays.length * 0.99)]).toBeLessThan(second)
    // Each has now failed five times, so none gets more than one message at a time.
    for (let n = 0; n < 100; n++) {
      const failing = await sender.receivers.list(`bad-${n}`)
      expect(failing.filter(({ nextTrialAt }) => nextTrialAt !== null)).toHaveLength(10)
    }
  })

  test('of an application with a long queue to quick receivers delay one of another by a turn', async () => {
    const { all, add, requests } = outbox(() => 204, { concurrency: 8, concurrencyPerApplication: 2 })
    for (let n = 0; n < 20; n++) for (let of = 0; of < 20; of++) await add(`busy-${n}`, `https://busy.example.com/${n}`)
    await add('new', 'https://new.example.com/')
    await all.send()
    expect(requests).toHaveLength(401)
    expect(requests.findIndex(({ app }) => app === 'new')).toBeLessThanOrEqual(20)
  })

  test('leave their lane when it is slow, and lose the slow one to an application that has none', async () => {
    const limits = { concurrency: 2, slowReceivers: 2, concurrencyPerApplication: 2, retryDelaysMs: [minute] }
    const { all, add, requests, delivery } = outbox((url) => (url.includes('slow') ? null : 204), limits)
    const [first, lost] = [await add('a', 'https://slow.example.com/1'), await add('a', 'https://slow.example.com/2')]
    void all.send()
    await vi.advanceTimersByTimeAsync(300)
    expect(requests).toHaveLength(2)
    const other = await add('b', 'https://slow.example.org/')
    void all.send()
    await vi.advanceTimersByTimeAsync(0)
    expect(requests).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(300)
    // The message is sent again in a few seconds, and its receiver does not count as failed.
    expect(await delivery(lost)).toMatchObject({ outcome: 'pending', lastStatus: null })
    expect((await delivery(lost))?.nextAttemptAt).toBeLessThan(Date.now() + 10 * second)
    await vi.advanceTimersByTimeAsync(15 * second)
    for (const id of [first, other]) expect(await delivery(id)).toMatchObject({ outcome: 'pending', attempts: 1 })
  })

  test('to a failing receiver wait for its trial without counting attempts, and are sent once it answers', async () => {
    let isUp = false
    const { all, add, requests, delivery } = outbox(() => (isUp ? 204 : 500), { retryDelaysMs: [second] })
    const tried = []
    for (let n = 0; n < 5; n++) tried.push(await add('a', 'https://example.com/'))
    await all.send()
    const waiting = []
    for (let n = 0; n < 5; n++) waiting.push(await add('a', 'https://example.com/'))
    const before = requests.length
    await all.send()
    expect(requests.length).toBe(before)
    for (const id of waiting) expect(await delivery(id)).toMatchObject({ outcome: 'pending', attempts: 0 })
    // The first trial fails, the second succeeds.
    const next = async () => {
      await vi.advanceTimersByTimeAsync(2.5 * minute)
      return await all.send()
    }
    expect(await next()).toBe(1)
    isUp = true
    await next()
    await vi.advanceTimersByTimeAsync(20 * second)
    await all.send()
    const outcomes = await Promise.all([...tried, ...waiting].map(async (id) => (await delivery(id))?.outcome))
    // The failed trial was the last attempt of one message.
    expect(outcomes.filter((outcome) => outcome === 'delivered').length).toBeGreaterThanOrEqual(9)
    expect(outcomes).not.toContain('pending')
  })

  test('to a disabled receiver are given up without a request', async () => {
    const { all, add, requests, sender, delivery } = outbox(() => 204, { disableAfterMs: 0 })
    for (let n = 0; n < 5; n++) await sender.receivers.failed({ app: 'a', url: 'https://example.com/' }, 404)
    const id = await add('a', 'https://example.com/x')
    expect(await all.send()).toBe(0)
    expect(await delivery(id)).toMatchObject({ outcome: 'given_up', attempts: 0 })
    expect(requests).toEqual([])
    await sender.receivers.enable('a', 'https://example.com')
    const next = await add('a', 'https://example.com/x')
    expect(await all.send()).toBe(1)
    expect(await delivery(next)).toMatchObject({ outcome: 'delivered' })
  })

  test('of one job are sent each at its time', async () => {
    const { all, jobs, requests } = outbox(() => 204)
    const now = Date.now()
    const message = { event: 'job.failed', occurredAt: now, attempts: 0, outcome: 'pending', lastStatus: null } as const
    const deliveries = [
      { ...message, id: 'later', url: 'https://example.com/later', nextAttemptAt: now + minute },
      { ...message, id: 'now', url: 'https://example.com/now', nextAttemptAt: now },
    ]
    await jobs.create(sampleJob({ status: 'FAILED', deliveries }))
    expect(await all.send()).toBe(1)
    await vi.advanceTimersByTimeAsync(minute)
    expect(await all.send()).toBe(1)
    expect(requests.map(({ url }) => url)).toEqual(['https://example.com/now', 'https://example.com/later'])
  })
})
