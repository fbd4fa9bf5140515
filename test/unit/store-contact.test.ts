import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StoreContact } from '../../src/core/engine/dispatch/store-contact.js'

const leaseMs = 30_000
const storageOutageMs = 600_000
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_700_000_000_000 }))
afterEach(() => void vi.useRealTimers())

const after = (ms: number) => void vi.advanceTimersByTime(ms)

function contactWith(scope: 'process' | 'shared' = 'shared') {
  const clock = { time: async () => Date.now() }
  const contact = new StoreContact({ jobs: { traits: { scope } }, clock, leaseMs, storageOutageMs })
  /** Notes an answer every 15 s for this long. */
  const answered = (ms: number) => {
    contact.noteAnswer()
    for (let passed = 0; passed < ms; passed += 15_000) {
      after(15_000)
      contact.noteAnswer()
    }
  }
  return { contact, answered, graceMs: async () => Date.now() - (await contact.lapsedBefore()) }
}

test('a process that has had contact for a lease takes over leases that ended a third of one ago', async () => {
  const { contact, answered, graceMs } = contactWith()
  expect([contact.isSteady, await graceMs()]).toEqual([false, storageOutageMs])
  answered(15_000)
  expect([contact.isSteady, await graceMs()]).toEqual([false, storageOutageMs])
  answered(15_000)
  expect([contact.isSteady, await graceMs()]).toEqual([true, leaseMs / 3])
})

test('after a call that was not answered, it waits for another lease', async () => {
  const { contact, answered } = contactWith()
  answered(leaseMs)
  contact.noteFailure()
  expect(contact.isSteady).toBe(false)
  answered(15_000)
  expect(contact.isSteady).toBe(false)
  answered(15_000)
  expect(contact.isSteady).toBe(true)
})

test('answers so far apart that an outage may lie between them count as a new beginning', () => {
  const { contact, answered } = contactWith()
  answered(leaseMs)
  after(18_000)
  contact.noteAnswer()
  expect(contact.isSteady).toBe(true)
  after(18_001)
  contact.noteAnswer()
  expect(contact.isSteady).toBe(false)
})

test('a process that stalled judges nothing before the store has answered it again', async () => {
  const { contact, answered, graceMs } = contactWith()
  answered(leaseMs)
  after(18_001)
  expect([contact.isSteady, await graceMs()]).toEqual([false, storageOutageMs])
})

test.each([600_000, -600_000])('a machine whose date moved by %i ms starts over: it may have been suspended', (ms) => {
  const { contact, answered } = contactWith()
  answered(leaseMs)
  vi.setSystemTime(Date.now() + ms)
  contact.noteAnswer()
  expect(contact.isSteady).toBe(false)
})

test('the only process of a store may judge from its start on, until it stalls', () => {
  const { contact } = contactWith('process')
  expect(contact.isSteady).toBe(true)
  contact.noteAnswer()
  expect(contact.isSteady).toBe(true)
  after(600_000)
  contact.noteAnswer()
  expect(contact.isSteady).toBe(false)
})

test('the only process of a store takes over nothing for a lease after its clock was set', async () => {
  const { contact, answered } = contactWith('process')
  contact.noteAnswer()
  vi.setSystemTime(Date.now() + 3_600_000)
  expect(await contact.lapsedBefore()).toBe(0)
  answered(15_000)
  expect(await contact.lapsedBefore()).toBe(0)
  answered(15_000)
  expect(await contact.lapsedBefore()).toBe(Date.now() - leaseMs / 3)
})

test('before its first answer, there was no contact to the store', () => {
  const { contact } = contactWith()
  expect(contact.answeredAt).toBe(-Infinity)
  contact.noteAnswer()
  expect(contact.answeredAt).toBe(performance.now())
})
