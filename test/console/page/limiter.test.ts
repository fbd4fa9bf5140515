import { expect, test } from 'vitest'
import { Limiter } from '../../../src/console/player/limiter.js'

const rate = 44_100
const block = 128

/** Output of a limiter, without its delay. */
function limited(planes: readonly Float32Array[]): Float32Array[] {
  const limiter = new Limiter(rate)
  const length = planes[0]?.length ?? 0
  const results = planes.map(() => new Float32Array(length))
  for (let at = 0; at <= length; at += block) {
    const output = planes.map(() => new Float32Array(block))
    limiter.process(
      planes.map((plane) => Float32Array.from({ length: block }, (_, i) => plane[at + i] ?? 0)),
      output,
    )
    if (at > 0)
      output.forEach((plane, index) => results[index]?.set(plane.subarray(0, length - at + block), at - block))
  }
  return results
}

const tone = (seconds: number, height: (time: number) => number) =>
  Float32Array.from(
    { length: Math.round((seconds * rate) / block) * block },
    (_, i) => height(i / rate) * Math.sin((2 * Math.PI * 440 * i) / rate),
  )
const highest = (plane: Float32Array) => plane.reduce((most, value) => Math.max(most, Math.abs(value)), 0)

test('a mix below full scale passes unchanged, bit for bit', () => {
  const planes = [tone(1, () => 0.999), tone(1, () => 0.3)]
  expect(limited(planes)).toEqual(planes)
})

test('nothing is above full scale, however high and however sudden, and both sides are turned down alike', () => {
  // A drum hit at three times full scale in a tone within it.
  const left = tone(2, (time) => (time > 1 && time < 1.05 ? 3 : 0.8))
  const right = tone(2, () => 0.4)
  const [outLeft = left, outRight = right] = limited([left, right])
  expect(highest(outLeft)).toBeLessThan(1)
  const at = Math.round(1.02 * rate)
  expect((outLeft[at] ?? 0) / (left[at] ?? 1)).toBeCloseTo((outRight[at] ?? 0) / (right[at] ?? 1), 5)
  // Before the hit and soon after it, the tone is unchanged.
  expect(outLeft.subarray(0, Math.floor(0.99 * rate))).toEqual(left.subarray(0, Math.floor(0.99 * rate)))
  expect(outLeft.subarray(1.3 * rate)).toEqual(left.subarray(1.3 * rate))
})

test('a steady level is turned down steadily, without any modulation', () => {
  const planes = [tone(1, () => 2)]
  const [out = new Float32Array(0)] = limited(planes)
  const gains = Array.from(out.subarray(rate / 2), (value, i) => value / (planes[0]?.[rate / 2 + i] ?? 1)).filter(
    (gain) => Number.isFinite(gain),
  )
  expect(Math.max(...gains) - Math.min(...gains)).toBeLessThan(0.02)
})
