import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SortedList } from '../../src/adapters/stores/shared/sorted-list.js'

const value = fc.integer({ min: 0, max: 40 })

it('reads in order from any place, forwards and backwards, after any adding and removing', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(value, fc.boolean()), { maxLength: 120 }),
      fc.array(value, { minLength: 1, maxLength: 10 }),
      (steps, places) => {
        const list = new SortedList<number>((a, b) => a - b)
        const present = new Set<number>()
        for (const [number, isAdded] of steps) {
          if (isAdded === present.has(number)) continue
          if (isAdded) list.add(number)
          else list.remove(number)
          if (isAdded) present.add(number)
          else present.delete(number)
        }
        const sorted = [...present].sort((a, b) => a - b)
        expect(list.size).toBe(sorted.length)
        for (const place of places) {
          expect([...list.ascending((number) => number >= place)]).toEqual(sorted.filter((number) => number >= place))
          expect([...list.descendingBefore((number) => number >= place)]).toEqual(
            sorted.filter((number) => number < place).reverse(),
          )
        }
      },
    ),
    { numRuns: 500 },
  )
})

it('has an item only once after it was removed and added again', () => {
  const list = new SortedList<number>((a, b) => a - b)
  for (const number of [1, 2, 3]) list.add(number)
  list.remove(2)
  list.add(2)
  expect([list.size, [...list.ascending(() => true)]]).toEqual([3, [1, 2, 3]])
})
