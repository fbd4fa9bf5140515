import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { JobEvents } from '../../../src/core/engine/events.js'
import type { FailingReceiver } from '../../../src/core/engine/job/receiver.js'
import type { Turn } from '../../../src/core/engine/limits/rested.js'
import { StoreClock } from '../../../src/core/engine/store-clock.js'
import { receiverBreakers } from '../../../src/core/engine/webhooks/receivers.js'
import { recordingLogger, testEngine, textWorkflow } from '../../engine/harness.js'

const start = 1_700_000_000_000
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const target = { app: 'a', url: 'https://example.com/hook?id=1' }
const origin = 'https://example.com'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'], now: start }))
afterEach(() => void vi.useRealTimers())
const after = (ms: number) => void vi.setSystemTime(Date.now() + ms)

function receivers(jobs = memoryJobs()) {
  const { documents } = jobs
  const { logger, lines } = recordingLogger()
  const { options } = testEngine(textWorkflow()).engine
  const events = new JobEvents(logger)
  const disabled: FailingReceiver[] = []
  events.on('receiver.disabled', ({ receiver }: { receiver: FailingReceiver }) => disabled.push(receiver))
  const all = receiverBreakers({ clock: new StoreClock(jobs), documents, events, options, logger })
  const fail = async (times = 1, at = target) => {
    for (let n = 0; n < times; n++) await all.failed(at, 503)
  }
  return { all, jobs, disabled, lines, fail, admit: () => all.admit(target) }
}

describe('a webhook receiver', () => {
  test('gets all messages until five in a row have failed', async () => {
    const { all, fail, admit } = receivers()
    expect(await admit()).toEqual({ kind: 'send' })
    await fail(4)
    expect(await admit()).toEqual({ kind: 'send' })
    await all.succeeded(target)
    expect(await all.list('a')).toEqual([])
    await fail(4)
    expect(await admit()).toEqual({ kind: 'send' })
    await fail()
    expect(await admit()).toEqual({ kind: 'wait', delayMs: minute })
  })

  test('counts as storage of its application while it fails', async () => {
    const { all, fail } = receivers()
    for (let n = 0; n < 60; n++) await fail(1, { app: 'a', url: `https://${n}.example.com/` })
    let turns = 0
    const turn: Turn = (work) => {
      turns++
      return work()
    }
    expect((await all.bytes('a', turn)) / 60).toBeGreaterThan(500)
    // Receivers are read a few at a time, so that other work is served in between.
    expect(turns).toBe(3)
    expect(await all.bytes('b')).toBe(0)
    for (let n = 0; n < 60; n++) await all.succeeded({ app: 'a', url: `https://${n}.example.com/` })
    expect(await all.bytes('a')).toBe(0)
  })

  test('that failed is tried with one message of all processes, after pauses that grow up to two hours', async () => {
    const { all, jobs, fail, admit } = receivers()
    const other = receivers(jobs)
    await fail(5)
    const pauses: number[] = []
    for (let n = 0; n < 9; n++) {
      const waiting = await other.admit()
      if (waiting.kind !== 'wait') return expect.unreachable()
      pauses.push(waiting.delayMs / minute)
      after(waiting.delayMs)
      const admitted = await Promise.all([admit(), other.admit()])
      expect(admitted.map(({ kind }) => kind).sort()).toEqual(['trial', 'wait'])
      // Until the trial ends, the other messages wait for its maximum duration.
      expect(await admit()).toEqual({ kind: 'wait', delayMs: 16_000 })
      await all.failed(target, null)
    }
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 64, 120, 120])
    after(2 * hour)
    expect(await admit()).toEqual({ kind: 'trial' })
    await all.succeeded(target)
    expect(await admit()).toEqual({ kind: 'send' })
  })

  test('is tried again even if the process that tried it died', async () => {
    const { fail, admit } = receivers()
    await fail(5)
    after(minute)
    expect(await admit()).toEqual({ kind: 'trial' })
    after(16_000)
    expect(await admit()).toEqual({ kind: 'trial' })
  })

  test('that has failed for three days is disabled, which is announced once, until it is enabled', async () => {
    const { all, jobs, disabled, lines, fail, admit } = receivers()
    await fail(5)
    after(3 * day - 1)
    await fail()
    expect(await admit()).toMatchObject({ kind: 'wait' })
    after(1)
    await fail(2)
    expect(disabled).toMatchObject([{ app: 'a', origin, failures: 7, failingSince: start, lastStatus: 503 }])
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    after(day)
    expect(await receivers(jobs).admit()).toEqual({ kind: 'disabled' })
    await all.enable('a', origin)
    expect(await admit()).toEqual({ kind: 'send' })
    await expect(all.enable('a', origin)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('that fails now and then is not disabled', async () => {
    const { fail, admit } = receivers()
    await fail()
    after(4 * day)
    await fail(2)
    expect(await admit()).toEqual({ kind: 'send' })
  })

  test('is one origin of one application, and no other application sees it', async () => {
    const { all, fail, admit } = receivers()
    await fail(5, { app: 'a', url: 'https://example.com:8443/hook' })
    await fail(5, { app: 'b', url: target.url })
    await fail(5, { app: 'a/b', url: target.url })
    expect(await admit()).toEqual({ kind: 'send' })
    expect((await all.list('a')).map((receiver) => receiver.origin)).toEqual(['https://example.com:8443'])
    await expect(all.enable('a', origin)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('that is disabled is listed first, then those that have failed longest', async () => {
    const { all, fail } = receivers()
    const at = (name: string) => ({ app: 'a', url: `https://${name}.example.com/` })
    await fail(5, at('disabled'))
    after(3 * day)
    await fail(1, at('disabled'))
    await fail(1, at('once'))
    after(1)
    await fail(5, at('paused'))
    after(1)
    await fail(5, at('later'))
    const names = (await all.list('a')).map((receiver) => new URL(receiver.origin).hostname.split('.')[0])
    expect(names).toEqual(['disabled', 'paused', 'later', 'once'])
  })

  test('is listed even if the record of another cannot be read', async () => {
    const { all, jobs, fail } = receivers()
    await fail(1)
    const [{ key } = { key: '' }] = await jobs.documents.list('receiver', { limit: 1 })
    await jobs.documents.put({ kind: 'receiver', key: `${key}0`, value: { app: 'a' }, ttlMs: day })
    expect((await all.list('a')).map((receiver) => receiver.origin)).toEqual([origin])
  })
})
