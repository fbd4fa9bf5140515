import { expect, test } from 'vitest'
import { ProcessorTime, usageOf } from '../../../src/core/engine/dispatch/attempt/attempt-usage.js'
import type { InputFile, Runner } from '../../../src/core/engine/ports/runner.js'

const inputs = { song: { bytes: 10 }, video: { bytes: 5 } } as unknown as Record<string, InputFile>
const secondsOf = (details: Record<string, unknown>) =>
  usageOf({ metered: true }, inputs, { details }).usage?.audioSeconds

test('a job without a quota uses none; one that failed uses the bytes of its inputs', () => {
  expect(usageOf({ metered: false }, inputs, { details: { seconds: 3 }, processorSeconds: 2 })).toEqual({
    used: { bytes: 15, audioSeconds: 3, processorSeconds: 2 },
  })
  expect(usageOf({ metered: true }, inputs)).toEqual({
    used: { bytes: 15, audioSeconds: 0, processorSeconds: 0 },
    usage: { bytes: 15, audioSeconds: 0 },
  })
})

test('the length of the audio is the detail `seconds`, or else the longest of the steps', () => {
  expect(secondsOf({ seconds: 0.5 })).toBe(0.5)
  expect(secondsOf({ seconds: 2, steps: { a: { seconds: 9 } } })).toBe(2)
  expect(secondsOf({ steps: { a: { seconds: 3 }, b: { seconds: 9 }, c: { seconds: 4 } } })).toBe(9)
  expect(secondsOf({ steps: { a: { steps: { b: { seconds: 7 } } }, c: null, d: undefined } })).toBe(7)
  expect(secondsOf({ steps: {} })).toBe(0)
})

test.each([['12'], [NaN], [Infinity], [-1], [0], [undefined]])('%s are not accepted as seconds', (seconds) => {
  expect(secondsOf({ seconds })).toBe(0)
  expect(secondsOf({ seconds, steps: null })).toBe(0)
  expect(secondsOf({ seconds, steps: 'many' })).toBe(0)
  expect(secondsOf({ seconds, steps: { a: { seconds: 2 } } })).toBe(2)
})

test('processor time is the sum of the last report of each run, 0 for one without a report', async () => {
  const time = new ProcessorTime()
  const said: ((seconds: number) => void)[] = []
  const runner = { run: async (_: unknown, { onUse }: { onUse: (seconds: number) => void }) => void said.push(onUse) }
  const counted = time.of(runner as unknown as Runner)
  for (let run = 0; run < 3; run++) await counted.run({} as never, {} as never)
  expect(time.used).toEqual({ processorSeconds: 0 })
  said[1]!(2)
  said[0]!(5)
  said[1]!(3)
  expect(time.used).toEqual({ processorSeconds: 8 })
})
