import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { recordingLogger, testEngine, textWorkflow } from '../harness.js'

describe('a job that does not run because the engine was not started', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  test('is logged once, after 30 s', async () => {
    const { logger, lines } = recordingLogger()
    const { submit } = testEngine(textWorkflow(), { logger })
    const { id } = await submit()
    await submit()
    await vi.advanceTimersByTimeAsync(29_999)
    expect(lines).toEqual([])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines).toEqual([{ level: 'warn', fields: { jobId: id } }])
  })

  test('is not logged once the engine has started, has run the job, or closes', async () => {
    const started = recordingLogger()
    const first = testEngine(textWorkflow(), { logger: started.logger })
    await first.submit()
    await first.engine.start()
    const ran = recordingLogger()
    const second = testEngine(textWorkflow(), { logger: ran.logger })
    await second.engine.run((await second.submit()).id)
    const closed = recordingLogger()
    const third = testEngine(textWorkflow(), { logger: closed.logger })
    await third.submit()
    await third.engine.close()
    await vi.advanceTimersByTimeAsync(60_000)
    for (const { lines } of [started, ran, closed]) expect(lines.filter(({ level }) => level === 'warn')).toEqual([])
    await first.engine.close()
  })

  test('is not logged if other processes share the store', async () => {
    const { logger, lines } = recordingLogger()
    const jobs = { ...memoryJobs(), traits: { scope: 'shared' } as const }
    const { submit } = testEngine(textWorkflow(), { logger }, { jobs })
    await submit()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines).toEqual([])
  })
})
