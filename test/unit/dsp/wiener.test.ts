import { describe, expect, test } from 'vitest'
import { VocalsRefinement } from '../../../src/core/media/dsp/wiener.js'
import { noise } from '../../separation/tracks.js'

type Complex = readonly [re: number, im: number]
/** Entries row by row. */
type Matrix = readonly [Complex, Complex, Complex, Complex]

const plus = (a: Complex, b: Complex): Complex => [a[0] + b[0], a[1] + b[1]]
const times = (a: Complex, b: Complex): Complex => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
const conjugate = (a: Complex): Complex => [a[0], -a[1]]
const scaled = (matrix: Matrix, factor: number) =>
  matrix.map(([re, im]) => [factor * re, factor * im]) as never as Matrix
const added = (a: Matrix, b: Matrix) => a.map((value, i) => plus(value, b[i]!)) as never as Matrix

function product([a, b, c, d]: Matrix, [e, f, g, h]: Matrix): Matrix {
  return [
    plus(times(a, e), times(b, g)),
    plus(times(a, f), times(b, h)),
    plus(times(c, e), times(d, g)),
    plus(times(c, f), times(d, h)),
  ]
}

function inverse([a, b, c, d]: Matrix): Matrix {
  const determinant = plus(times(a, d), times([-1, 0], times(b, c)))
  const factor = times(conjugate(determinant), [1 / (determinant[0] ** 2 + determinant[1] ** 2), 0])
  return [times(factor, d), times(factor, times([-1, 0], b)), times(factor, times([-1, 0], c)), times(factor, a)]
}

const epsilon = 2 ** -23

/**
 * One step as described by Open-Unmix, for one bin of one window: `mixture[t]` holds the left and right channels,
 * `voice[t]` their magnitudes in the vocals.
 */
function refinedBin(mixture: [Complex, Complex][], voice: [number, number][]): [Complex, Complex][] {
  const magnitudes = mixture.map((pair) => pair.map(([re, im]) => Math.hypot(re, im)))
  const sources = [
    voice,
    voice.map((pair, t) => pair.map((value, channel) => Math.max(0, magnitudes[t]![channel]! - value))),
  ].map((levels) =>
    mixture.map((pair, t) =>
      pair.map((value, channel) => {
        const magnitude = magnitudes[t]![channel]!
        // The voice may be louder than a silent channel, which has no phase.
        return magnitude === 0 ? ([0, 0] as Complex) : times(value, [levels[t]![channel]! / magnitude, 0])
      }),
    ),
  )
  const models = sources.map((source, index) => {
    const levels = index === 0 ? voice : magnitudes.map((pair, t) => pair.map((m, c) => Math.max(0, m - voice[t]![c]!)))
    const powers = levels.map(([left, right]) => (left! ** 2 + right! ** 2) / 2)
    const total = powers.reduce((sum, power) => sum + power, epsilon)
    let covariance: Matrix = [
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 0],
    ]
    source.forEach(([left, right], t) => {
      const [l, r] = levels[t]!
      covariance = added(covariance, [
        [l! ** 2, 0],
        times(left!, conjugate(right!)),
        times(right!, conjugate(left!)),
        [r! ** 2, 0],
      ])
    })
    return { powers, covariance: scaled(covariance, 1 / total) }
  })
  const guard = Math.sqrt(epsilon)
  const regular: Matrix = [
    [guard, 0],
    [0, 0],
    [0, 0],
    [guard, 0],
  ]
  return mixture.map(([left, right], t) => {
    const [own, others] = models.map(({ powers, covariance }) => scaled(covariance, powers[t]!))
    const [a, b, c, d] = product(own!, inverse(added(added(own!, others!), regular)))
    return [plus(times(a, left), times(b, right)), plus(times(c, left), times(d, right))]
  })
}

interface Sizes {
  bins: number
  frameCount: number
  windowFrames: number
}

/** Each bin at its own level, over five powers of ten: the guards matter in the quietest ones. */
function song({ bins, frameCount }: Sizes, level: number, seed: number) {
  const plane = (own: number) =>
    noise(2 * frameCount * bins, own).map((value, i) => level * value * 10 ** (-5 * ((i % bins) / bins)))
  const mixture = { re: plane(seed), im: plane(seed + 1) }
  const share = noise(2 * frameCount * bins, seed + 2)
  return { mixture, share }
}

const at = ({ bins, frameCount }: Sizes, channel: number, frame: number, bin: number) =>
  (channel * frameCount + frame) * bins + bin

function refine(sizes: Sizes, { mixture, share }: ReturnType<typeof song>, used: [number, number]) {
  const { bins, frameCount, windowFrames } = sizes
  const refinement = new VocalsRefinement(sizes)
  const before = { re: mixture.re.slice(), im: mixture.im.slice() }
  const magnitudes = new Float32Array(2 * bins * frameCount)
  const peaks = refinement.magnitudes(mixture, magnitudes)
  expect(mixture).toEqual(before)
  const vocals = new Float32Array(magnitudes.length)
  const expected = { re: mixture.re.slice(), im: mixture.im.slice() }
  for (let frame = 0; frame < frameCount; frame++) {
    let peak = 0
    for (const channel of [0, 1]) {
      for (let bin = 0; bin < bins; bin++) {
        const i = at(sizes, channel, frame, bin)
        const magnitude = Math.hypot(mixture.re[i]!, mixture.im[i]!)
        const transposed = (channel * bins + bin) * frameCount + frame
        expect(Math.abs(magnitudes[transposed]! - magnitude)).toBeLessThanOrEqual(1e-6 * magnitude)
        // Up to a fifth louder than the mixture.
        vocals[transposed] = magnitude * 1.2 * (share[i]! + 0.5)
        peak = Math.max(peak, magnitude)
      }
    }
    expect(Math.abs(peaks[frame]! - peak)).toBeLessThanOrEqual(1e-6 * peak)
  }
  for (let from = used[0]; from < used[1]; from += windowFrames) {
    const frames = Array.from({ length: Math.min(windowFrames, used[1] - from) }, (_, t) => from + t)
    const scale = 10 / Math.max(...frames.map((frame) => peaks[frame]!))
    if (scale === Infinity) continue
    for (let bin = 0; bin < bins; bin++) {
      const found = refinedBin(
        frames.map((frame) => both((i) => [scale * before.re[i]!, scale * before.im[i]!], frame, bin)),
        frames.map((frame) =>
          [0, 1].map((channel) => scale * vocals[(channel * bins + bin) * frameCount + frame]!),
        ) as [number, number][],
      )
      frames.forEach((frame, t) =>
        [0, 1].forEach((channel) => {
          const i = at(sizes, channel, frame, bin)
          expected.re[i] = found[t]![channel]![0] / scale
          expected.im[i] = found[t]![channel]![1] / scale
        }),
      )
    }
  }
  refinement.refine(mixture, vocals, peaks, used)
  return { found: mixture, expected, before }

  function both(value: (i: number) => Complex, frame: number, bin: number): [Complex, Complex] {
    return [value(at(sizes, 0, frame, bin)), value(at(sizes, 1, frame, bin))]
  }
}

/** The largest error, relative to the mixture's level in that bin. */
function largestError(sizes: Sizes, { found, expected, before }: ReturnType<typeof refine>): number {
  let most = 0
  for (let bin = 0; bin < sizes.bins; bin++) {
    let [error, level] = [0, 0]
    for (const channel of [0, 1]) {
      for (let frame = 0; frame < sizes.frameCount; frame++) {
        const i = at(sizes, channel, frame, bin)
        const difference = Math.hypot(found.re[i]! - expected.re[i]!, found.im[i]! - expected.im[i]!)
        error = Math.max(error, Number.isNaN(difference) ? Infinity : difference)
        level = Math.max(level, Math.hypot(before.re[i]!, before.im[i]!))
      }
    }
    most = Math.max(most, error / (level || 1))
  }
  return most
}

describe('the refinement of vocals', () => {
  test.each<[Sizes, [number, number]]>([
    [{ bins: 5, frameCount: 7, windowFrames: 7 }, [0, 7]],
    [{ bins: 9, frameCount: 40, windowFrames: 17 }, [0, 40]],
    [{ bins: 8, frameCount: 27, windowFrames: 20 }, [3, 25]],
    [{ bins: 150, frameCount: 5, windowFrames: 5 }, [1, 5]],
  ])('of %j, frames %j, equals the step of Open-Unmix in double precision', (sizes, used) => {
    for (const level of [1, 1e-4]) {
      const run = refine(sizes, song(sizes, level, 1), used)
      expect(largestError(sizes, run)).toBeLessThan(1e-4)
      // The step has an effect.
      expect(largestError(sizes, { ...run, expected: run.before })).toBeGreaterThan(0.1)
    }
  })

  test('of silent windows leaves them silent', () => {
    const sizes = { bins: 8, frameCount: 12, windowFrames: 4 }
    const given = song(sizes, 1, 4)
    for (const plane of [given.mixture.re, given.mixture.im])
      for (const channel of [0, 1]) plane.fill(0, at(sizes, channel, 4, 0), at(sizes, channel, 8, 0))
    const run = refine(sizes, given, [0, 12])
    expect(largestError(sizes, run)).toBeLessThan(1e-4)
  })

  test('of equal channels keeps them equal, without loss of precision', () => {
    const sizes = { bins: 16, frameCount: 12, windowFrames: 12 }
    const given = song(sizes, 1, 7)
    const half = sizes.frameCount * sizes.bins
    for (const plane of [given.mixture.re, given.mixture.im, given.share]) plane.copyWithin(half, 0, half)
    const run = refine(sizes, given, [0, 12])
    expect(largestError(sizes, run)).toBeLessThan(1e-4)
    expect(run.found.re.subarray(half)).toEqual(run.found.re.subarray(0, half))
  })

  test('of one silent channel refines the other one', () => {
    const sizes = { bins: 8, frameCount: 9, windowFrames: 9 }
    const given = song(sizes, 1, 9)
    given.mixture.re.fill(0, sizes.frameCount * sizes.bins)
    given.mixture.im.fill(0, sizes.frameCount * sizes.bins)
    expect(largestError(sizes, refine(sizes, given, [0, 9]))).toBeLessThan(1e-4)
  })
})
