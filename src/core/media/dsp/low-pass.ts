/** A low-pass filter, sampled at `phases` positions between two input samples. */
export interface LowPass {
  /** Coefficients of one phase; a multiple of 8, which the dot product takes at a time. */
  taps: number
  /** `rows[p * taps + k]` weights the input sample `k - taps/2 + 1` after the one just before the output's position. */
  rows: Float32Array
}

const attenuationDb = 120
/** Passband as a fraction of the lower Nyquist frequency; the transition band is the rest. 20.07 kHz for 44.1 kHz. */
const passband = 0.91

/**
 * Kaiser-windowed sinc (J. F. Kaiser 1974; Oppenheim and Schafer, Discrete-Time Signal Processing, 7.6) of 120 dB for
 * converting `inputRate` to `outputRate`: flat up to 0.91 of the lower of the two Nyquist frequencies, and closed above
 * that frequency. Each phase sums to 1, so that a constant stays constant.
 */
export function designLowPass(inputRate: number, outputRate: number, phases: number, rowCount: number): LowPass {
  const nyquist = Math.min(inputRate, outputRate) / 2
  const cutoff = (nyquist * (1 + passband)) / 2 / inputRate
  const slope = (nyquist * (1 - passband)) / inputRate
  const beta = 0.1102 * (attenuationDb - 8.7)
  const needed = (attenuationDb - 8) / (2.285 * 2 * Math.PI * slope)
  const taps = Math.ceil(needed / 8) * 8
  const half = taps / 2
  const rows = new Float32Array(rowCount * taps)
  const row = new Float64Array(taps)
  const windowPeak = besselI0(beta)
  for (let phase = 0; phase < rowCount; phase++) {
    let sum = 0
    for (let tap = 0; tap < taps; tap++) {
      const time = tap - half + 1 - phase / phases
      const edge = time / half
      const window = Math.abs(edge) >= 1 ? 0 : besselI0(beta * Math.sqrt(1 - edge * edge)) / windowPeak
      row[tap] = sinc(2 * cutoff * time) * window
      sum += row[tap]!
    }
    for (let tap = 0; tap < taps; tap++) rows[phase * taps + tap] = row[tap]! / sum
  }
  return { taps, rows }
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)
}

/** Modified Bessel function of the first kind, order 0, by its power series. */
export function besselI0(x: number): number {
  let sum = 1
  let term = 1
  for (let k = 1; term > 1e-18 * sum; k++) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}
