import { sampleRate } from './track.mjs'

/** One-pole low-pass; returns a function that filters one sample. */
export function onePole(hz) {
  const amount = 1 - Math.exp((-2 * Math.PI * hz) / sampleRate)
  let state = 0
  return (sample) => (state += amount * (sample - state))
}

/**
 * State-variable filter (trapezoidal, after A. Simper) whose cut-off may change with every sample.
 *
 * @param {'low' | 'band' | 'high'} kind
 */
export function stateVariable(kind, resonance = 0.7) {
  let first = 0
  let second = 0
  const damping = 1 / resonance
  return (sample, hz) => {
    const g = Math.tan((Math.PI * Math.min(hz, 0.45 * sampleRate)) / sampleRate)
    const a = 1 / (1 + g * (g + damping))
    const difference = sample - second
    const band = a * first + g * a * difference
    const low = second + g * band
    first = 2 * band - first
    second = 2 * low - second
    if (kind === 'low') return low
    return kind === 'band' ? band : sample - damping * band - low
  }
}

/** Two-pole resonator with unit gain at 0 Hz, the building block of a vocal tract (D. Klatt, 1980). */
export function resonator(rate) {
  let a = 1
  let b = 0
  let c = 0
  let last = 0
  let beforeLast = 0
  return {
    tune(hz, bandwidthHz) {
      const radius = Math.exp((-Math.PI * bandwidthHz) / rate)
      c = -radius * radius
      b = 2 * radius * Math.cos((2 * Math.PI * hz) / rate)
      a = 1 - b - c
    },
    next(sample) {
      const value = a * sample + b * last + c * beforeLast
      beforeLast = last
      last = value
      return value
    },
  }
}
