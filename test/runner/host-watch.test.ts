import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { watchSource } from '../../src/core/engine/runner/host-watch.js'

/**
 * The calls of the thread in one poll of a process of 200 bytes. The process is simulated: no real stage ends at the
 * very moment at which its memory is read.
 */
function look(limit: number[], duringReading: () => void) {
  const calls: unknown[][] = []
  const rss = () => {
    duringReading()
    return 200
  }
  const modules: Record<string, object> = {
    'node:worker_threads': { workerData: limit },
    'node:fs': { writeSync: (...given: unknown[]) => calls.push(given) },
  }
  runInNewContext(watchSource(1), {
    require: (name: string) => modules[name],
    process: { ppid: 1, pid: 2, memoryUsage: { rss }, kill: (...given: unknown[]) => calls.push(given) },
    setInterval: (work: () => void) => work(),
  })
  return calls.filter(([, signal]) => signal !== 0)
}

it('a process is not killed for memory when a stage with a limit ends while its memory is read', () => {
  const limit = [300]
  expect(look(limit, () => (limit[0] = 0))).toEqual([])
})

it('a process that holds more memory than its stage may take says so and is killed', () => {
  expect(look([100], () => {})).toEqual([
    [2, expect.stringContaining('FATAL ERROR: the process holds more memory than the 100 bytes')],
    [2, 'SIGKILL'],
  ])
  expect(look([0], () => {})).toEqual([])
})
