import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DueQueue, type DueEntry } from '../../src/adapters/stores/shared/due-queue.js'

const item = fc.integer({ min: 0, max: 9 })
const time = fc.integer({ min: 0, max: 5 })
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('set' as const), item, at: fc.option(time) }),
    fc.record({ kind: fc.constant('due' as const), now: time, limit: fc.integer({ min: 0, max: 12 }) }),
  ),
  { maxLength: 80 },
)

it('returns what is due, earliest first, equals in order of entry, after any adding, moving and removing', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const queue = new DueQueue<number>()
      const entries = new Map<number, DueEntry<number> | undefined>()
      // The model: in order of insertion, sorted again for each query.
      const expected: { item: number; at: number }[] = []
      for (const step of all) {
        if (step.kind === 'set') {
          entries.set(step.item, queue.set(entries.get(step.item), step.item, step.at))
          const known = expected.find((each) => each.item === step.item)
          if (step.at === null) expected.splice(0, expected.length, ...expected.filter((each) => each !== known))
          else if (known) known.at = step.at
          else expected.push({ item: step.item, at: step.at })
          continue
        }
        const due = expected.filter(({ at }) => at <= step.now).sort((a, b) => a.at - b.at)
        expect(queue.due(step.now, 1)[0]).toBe(due[0]?.item)
        expect(queue.due(step.now, step.limit)).toEqual(due.slice(0, step.limit).map((each) => each.item))
      }
    }),
    { numRuns: 500 },
  )
})

it('keeps the order when the last entry fills the gap of one in a branch that is due later', () => {
  const queue = new DueQueue<number>()
  // As a heap: 1; 50, 2; 60, 70, 51, 4. The 4 replaces the 60, below the 50.
  const entries = [1, 50, 2, 60, 70, 51, 4].map((at) => queue.set(undefined, at, at))
  queue.set(entries[3], 60, null)
  expect(queue.due(100, 10)).toEqual([1, 2, 4, 50, 51, 70])
})
