import { describe, expect, test, vi } from 'vitest'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { jobQueueContract } from '../../../src/contract/index.js'
import type { JobQueue } from '../../../src/core/engine/ports/job-queue.js'

type Case = () => Promise<void>

function casesFor(open: () => JobQueue): Map<string, Case> {
  const cases = new Map<string, Case>()
  const add = (name: string, body: Case) => void cases.set(name, body)
  jobQueueContract(
    { describe: (_name, body) => body(), test: Object.assign(add, { skip() {} }) },
    {
      async open() {
        const queue = open()
        return { queue, close: () => queue.close() }
      },
    },
  )
  return cases
}

/** Does not wait for a call of a listener before it begins the next. */
function overlappingQueue(): JobQueue {
  const queue = memoryQueue()
  return { ...queue, subscribe: (listener) => queue.subscribe(async () => void listener().catch(() => {})) }
}

describe('the suite of queues', () => {
  test.each([
    'a notification during a call leads to another call that begins after it',
    'after simultaneous notifications, a call begins after the last of them, and calls never overlap',
  ])('finds overlapping calls of a listener: %s', async (name) => {
    await expect(casesFor(overlappingQueue).get(name)?.()).rejects.toThrow(
      'A listener is not called while its previous call is in progress. Expected 1, got',
    )
  })

  test('says which call did not come', async () => {
    let now = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 5000))
    const deaf = casesFor(() => ({ ...memoryQueue(), notify: async () => {} }))
    const name = 'a notification calls the listener'
    await expect(deaf.get(name)?.()).rejects.toThrow(
      `Within 20000 ms there was no call 1 of the listener. The calls so far: 0. Case: "${name}".`,
    )
    clock.mockRestore()
  })
})
