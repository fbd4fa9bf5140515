import { describe, expect, it } from 'vitest'
import { PcmEncoder, type PcmFormat } from '../../src/core/media/encode/pcm-encoder.js'

const full = 32_768
/** Halves and their neighbours in single precision, the ends of the range and values beyond, and non-numbers. */
const edges = [0, 0.5, -0.5, 1.5, -1.5, 0.499_999_97, 1 - 2 ** -24, -0.499_999_97, 32_766.5, 32_767.5, -32_768.5]
  .map((value) => value / full)
  .concat([1, -1, 1 - 2 ** -24, -1 - 2 ** -23, 2, -2, 1e30, -1e30, 1e-40, Infinity, -Infinity, NaN])

function noise(length: number): Float32Array {
  return Float32Array.from({ length }, () => (Math.random() - 0.5) * 2.2)
}

function encoded(format: PcmFormat, planes: Float32Array[]) {
  const encoder = new PcmEncoder(format)
  const bytes = encoder.encode(planes).slice()
  return { samples: new Int16Array(bytes.buffer), clippedSamples: encoder.clippedSamples }
}

/** Rounding by its definition, in double precision. */
function rounded(value: number): number {
  const integer = Math.floor(value * full + 0.5)
  return Number.isNaN(integer) ? 0 : Math.min(full - 1, Math.max(-full, integer))
}

describe('16-bit stereo', () => {
  it.each([0, 1, 2, 3, 4, 5, 2047, 2048, 2049, 10_001])(
    'rounds and clips %i samples as the definition does',
    (length) => {
      const planes = [noise(length), noise(length)]
      const { samples, clippedSamples } = encoded('16', planes)
      expect([...samples]).toEqual(Array.from({ length: 2 * length }, (_, i) => rounded(planes[i % 2]![i >> 1]!)))
      const beyond = planes
        .flatMap((plane) => [...plane])
        .filter((value) => Math.floor(value * full + 0.5) !== rounded(value))
      expect(clippedSamples).toBe(beyond.length)
    },
  )

  it('rounds every half in the same direction', () => {
    const left = Float32Array.from(edges)
    const right = left.toReversed()
    const { samples, clippedSamples } = encoded('16', [left, right])
    expect([...samples]).toEqual(edges.flatMap((_, i) => [rounded(left[i]!), rounded(right[i]!)]))
    const one = encoded('16', [left])
    expect([...samples].filter((_, i) => i % 2 === 0)).toEqual([...one.samples])
    expect(clippedSamples).toBe(2 * one.clippedSamples)
    expect(one.clippedSamples).toBeGreaterThan(5)
  })
})
