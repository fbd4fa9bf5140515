import { Keyv } from 'keyv'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryApplications, memoryJobs } from '../../../src/adapters/memory.js'
import { keyvApplications } from '../../../src/adapters/stores/keyv/keyv-applications.js'
import { keyvJobs } from '../../../src/adapters/stores/keyv/keyv-jobs.js'
import { DelayingMap } from './delaying-map.js'
import { randomSource } from '../../../src/contract/random-source.js'
import { durableStores } from '../../http/durable-stores.js'
import { gate, recordingLogger, steppingClock, testEngine, textWorkflow } from '../../engine/harness.js'

const close = async () => {}
const stores: typeof durableStores = [
  ...durableStores,
  ['memory', async () => ({ jobs: memoryJobs(), applications: memoryApplications(), close }), undefined],
  ['Keyv, a backend of random delays', async () => ({ ...openKeyv(), close }), undefined],
]

function openKeyv() {
  const backend = () => new Keyv({ store: new DelayingMap(randomSource(5), 3) })
  return { jobs: keyvJobs({ keyv: backend() }), applications: keyvApplications({ keyv: backend() }) }
}

describe.each(stores)('limits of an application (%s)', (_, open, missing) => {
  test.skipIf(missing !== undefined)(
    `that one process sets hold in the others${missing === undefined ? '' : `: ${missing}`}`,
    async () => {
      const { jobs, applications, close } = await open()
      const settings = { limits: { maxQueuedJobs: 3 }, quota: { jobs: 10, bytes: 100 } }
      const [one, two] = [1, 2].map(() => testEngine(textWorkflow(), settings, { jobs, applications }))
      if (!one || !two) throw new RangeError('two engines are needed')
      await applications.putApplication({ id: 'app', name: 'App', createdAt: 0, webhook: null })
      await one.engine.setLimits('app', { maxQueuedJobs: 2, jobs: 4 })
      await two.engine.setLimits('app', { audioMinutes: 1.5 })
      expect(await one.engine.limits('app')).toEqual({
        own: { maxQueuedJobs: 2, jobs: 4, audioMinutes: 1.5 },
        effective: { maxQueuedJobs: 2, jobs: 4, audioMinutes: 1.5, bytes: 100 },
        used: { jobs: 0, audioSeconds: 0, bytes: 0 },
        revision: expect.stringMatching(/^[0-9a-f]{16}$/),
      })
      // Two changes of the same revision: one of them is refused.
      const { revision } = await one.engine.limits('app')
      const outcomes = await Promise.allSettled([
        one.engine.setLimits('app', { jobs: 5 }, { revision }),
        two.engine.setLimits('app', { jobs: 6 }, { revision }),
      ])
      const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
      expect(refused).toMatchObject([{ code: 'CONFLICT', retryable: false }])
      expect((await one.engine.limits('app')).own.jobs).toBe(outcomes[0]?.status === 'fulfilled' ? 5 : 6)
      // Changes without a revision set different figures concurrently, and none is lost.
      await Promise.all([one.engine.setLimits('app', { jobs: 4 }), two.engine.setLimits('app', { bytes: 200 })])
      expect((await two.engine.limits('app')).own).toEqual({ maxQueuedJobs: 2, jobs: 4, audioMinutes: 1.5, bytes: 200 })
      expect((await one.engine.limits('app')).revision).not.toBe(revision)
      await one.submit()
      await two.submit()
      await expect(two.submit()).rejects.toMatchObject({ code: 'QUEUE_FULL' })
      await one.engine.setLimits('app', { maxQueuedJobs: null })
      await two.submit()
      await expect(one.submit()).rejects.toMatchObject({ code: 'QUEUE_FULL' })
      await one.engine.bulk('cancel', { app: 'app' })
      await one.submit()
      await expect(two.submit()).rejects.toMatchObject({
        code: 'QUOTA_EXCEEDED',
        details: { quota: 'jobs', limit: 4, used: 4 },
      })
      expect((await two.engine.limits('app')).used.jobs).toBe(4)
      await Promise.all([one.engine.close(), two.engine.close()])
      await close()
    },
  )
})

test('audio without a job counts on the day of the store, whatever the node says', async () => {
  const clock = steppingClock(Date.UTC(2026, 0, 31, 23, 59))
  const jobs = memoryJobs({ clock: clock.now })
  const { engine } = testEngine(textWorkflow(), { quota: { audioMinutes: 1 } }, { jobs })
  await expect(engine.chargeAudio('app', 60)).rejects.toMatchObject({
    code: 'QUOTA_EXCEEDED',
    details: { resetsAt: '2026-02-01T00:00:00.000Z' },
  })
  clock.advance(60_000)
  await engine.chargeAudio('app', 0)
  expect(await engine.usage('app')).toMatchObject({ audioSeconds: 0 })
})

test('set so slowly that another process no longer waits leave the lock to that one', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const [jobs, applications, locked] = [memoryJobs(), memoryApplications(), [] as boolean[]]
  const put: typeof jobs.documents.put = async (...document) => {
    const version = await jobs.documents.put(...document)
    locked.push(version !== undefined)
    return version
  }
  const documents = { ...jobs.documents, put }
  const gates = [gate(), gate(), gate()]
  let changes = 0
  const putApplication: typeof applications.putApplication = async (application) => {
    await gates[changes++]?.opened
    await applications.putApplication(application)
  }
  await applications.putApplication({ id: 'app', name: 'App', createdAt: 0, webhook: null })
  const parts = { jobs: { ...jobs, documents }, applications: { ...applications, putApplication } }
  const { engine } = testEngine(textWorkflow(), {}, parts)
  const slow = engine.setLimits('app', { jobs: 1 })
  await vi.waitFor(() => expect(changes).toBe(1))
  vi.advanceTimersByTime(11_000)
  const second = engine.setLimits('app', { jobs: 2 })
  await vi.waitFor(() => expect(changes).toBe(2))
  gates[0]?.open()
  await slow
  locked.length = 0
  const third = engine.setLimits('app', { jobs: 3 })
  await vi.waitFor(() => expect(locked).not.toEqual([]))
  expect(locked[0]).toBe(false)
  for (const each of gates) each.open()
  await Promise.all([second, third])
})

test('of an unknown application, and wrong ones, are refused', async () => {
  const { engine } = testEngine(textWorkflow())
  await expect(engine.setLimits('nobody', { jobs: 1 })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(engine.setLimits('nobody', { jobs: 1.5 })).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
})

test('a store that cannot record the limits for all applications still accepts jobs', async () => {
  const { parts } = testEngine(textWorkflow())
  const { logger, lines } = recordingLogger()
  const put = () => Promise.reject(new Error('read only'))
  const documents = { ...parts.jobs.documents, put }
  const { submit } = testEngine(textWorkflow(), { logger }, { jobs: { ...parts.jobs, documents } })
  expect((await submit()).status).toBe('QUEUED')
  expect(lines).toMatchObject([{ level: 'warn', fields: { err: expect.objectContaining({ message: 'read only' }) } }])
})
