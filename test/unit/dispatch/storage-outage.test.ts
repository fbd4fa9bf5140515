import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { throughOutage } from '../../../src/core/engine/dispatch/attempt/storage-outage.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { resumeTime, stopTime } from '../../engine/stopped-time.js'

beforeEach(stopTime)
afterEach(resumeTime)

const away = new StemworkError('STORE_UNAVAILABLE', 'No store.', { retryable: true })

/** Work that fails with these errors, one after another, and then succeeds; the last `'always'` repeats the one before. */
function working(errors: unknown[], { maxMs = 3_600_000 } = {}) {
  const startedAt = performance.now()
  const tries: number[] = []
  const failures: unknown[] = []
  const controller = new AbortController()
  const result = throughOutage(
    async () => {
      tries.push(Math.round(performance.now() - startedAt))
      const error = errors[0] === 'always' ? away : errors.shift()
      // oxlint-disable-next-line typescript/only-throw-error -- one case is no Error, on purpose
      if (error !== undefined) throw error
      return 'done'
    },
    { signal: controller.signal, maxMs, onFailure: (error) => failures.push(error) },
  )
  result.catch(() => {})
  return { result, tries, failures, controller }
}

test('work that succeeds is done once', async () => {
  const { result, tries, failures } = working([])
  expect(await result).toBe('done')
  expect([tries, failures]).toEqual([[0], []])
})

test('an outage is waited for, half a second first, then twice as long each time, up to half a minute', async () => {
  const { result, tries, failures } = working(Array.from({ length: 9 }, () => away))
  await vi.advanceTimersByTimeAsync(200_000)
  expect(await result).toBe('done')
  expect(tries).toEqual([0, 500, 1500, 3500, 7500, 15_500, 31_500, 61_500, 91_500, 121_500])
  expect(failures).toEqual(Array.from({ length: 9 }, () => away))
})

test('an outage that lasts too long is an error, after a last try when the time is up', async () => {
  const { result, tries, failures } = working(['always'], { maxMs: 1900 })
  await vi.advanceTimersByTimeAsync(10_000)
  await expect(result).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    message: expect.stringContaining('more than 2 s'),
    cause: away,
  })
  expect(tries).toEqual([0, 500, 1500, 1900])
  expect(failures).toHaveLength(3)
})

test('without time to wait the first failure is the last', async () => {
  const { result, tries, failures } = working(['always'], { maxMs: 0 })
  await expect(result).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: away })
  expect([tries, failures]).toEqual([[0], []])
})

test.each([
  new Error('broken'),
  new StemworkError('INTERNAL_ERROR', 'Broken.', { retryable: true }),
  new StemworkError('STORE_UNAVAILABLE', 'Away for good.', { retryable: false }),
  { code: 'STORE_UNAVAILABLE', retryable: true },
])('another error is thrown at once: %o', async (error) => {
  const { result, tries, failures } = working([error])
  await expect(result).rejects.toBe(error)
  expect([tries, failures]).toEqual([[0], []])
})

test('the signal ends the wait, and nothing is tried after it', async () => {
  const { result, tries, controller } = working(['always'])
  await vi.advanceTimersByTimeAsync(100)
  controller.abort(new Error('enough'))
  await expect(result).rejects.toThrow('enough')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(tries).toEqual([0])
  const work = vi.fn(async () => 'done')
  const options = { signal: controller.signal, maxMs: 1000, onFailure() {} }
  await expect(throughOutage(work, options)).rejects.toThrow('enough')
  expect(work).not.toHaveBeenCalled()
})

test('work that fails because of the signal is not waited for', async () => {
  const controller = new AbortController()
  const onFailure = vi.fn()
  const work = async () => {
    controller.abort(new Error('enough'))
    throw away
  }
  await expect(throughOutage(work, { signal: controller.signal, maxMs: 1000, onFailure })).rejects.toBe(away)
  expect(onFailure).not.toHaveBeenCalled()
})
