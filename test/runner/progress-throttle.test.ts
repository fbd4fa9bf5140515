import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { throttleProgress } from '../../src/core/engine/runner/progress-throttle.js'
import type { WorkProgress } from '../../src/core/engine/ports/runner.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

it('passes on the first value at once, then the latest once per interval, and the last at the flush', () => {
  const sent: number[] = []
  const progress = throttleProgress((value: WorkProgress) => sent.push(value.progress), 100)
  progress.push({ stage: 'a', progress: 0.1 })
  progress.push({ stage: 'a', progress: 0.2 })
  progress.push({ stage: 'a', progress: 0.3 })
  expect(sent).toEqual([0.1])
  vi.advanceTimersByTime(100)
  expect(sent).toEqual([0.1, 0.3])
  progress.push({ stage: 'a', progress: 0.9 })
  progress.flush()
  progress.flush()
  expect(sent).toEqual([0.1, 0.3, 0.9])
})

it('passes on a new stage at once, because the stage may block the thread right after', () => {
  const sent: string[] = []
  const progress = throttleProgress((value: WorkProgress) => sent.push(value.stage), 100)
  progress.push({ stage: 'a', progress: 0.1 })
  progress.push({ stage: 'b', progress: 0.1 })
  expect(sent).toEqual(['a', 'b'])
})

it('needs no timer to pass on a value that is due', () => {
  const sent: number[] = []
  const progress = throttleProgress((value: WorkProgress) => sent.push(value.progress), 100)
  progress.push({ stage: 'a', progress: 0.1 })
  vi.setSystemTime(Date.now() + 1000)
  vi.advanceTimersByTime(150)
  progress.push({ stage: 'a', progress: 0.5 })
  expect(sent).toEqual([0.1, 0.5])
})
