/**
 * The K-weighting filter of ITU-R BS.1770-5, annex 1: a shelf that models the head, then a high-pass, for one
 * channel. The recommendation gives coefficients for 48 kHz; those for other rates come from the same analogue filters
 * by the bilinear transform (B. De Man, Evaluation of Implementations of the EBU R128 Loudness Measurement, AES 145,
 * 2018).
 */
export class KWeighting {
  readonly #shelf: Biquad
  readonly #highPass: Biquad
  /** State of the two filters, two values each. */
  readonly #state = new Float64Array(4)

  constructor(sampleRate: number) {
    this.#shelf = shelf(sampleRate)
    this.#highPass = highPass(sampleRate)
  }

  /**
   * Filters samples `from` to `to`, which follow those of the previous call. Returns the sum of the squares of the
   * result.
   */
  energy(plane: Float32Array, from: number, to: number): number {
    const { b0, b1, b2, a1, a2 } = this.#shelf
    const { a1: c1, a2: c2 } = this.#highPass
    const state = this.#state
    let [s1, s2, h1, h2] = state
    let sum = 0
    for (let i = from; i < to; i++) {
      const x = plane[i]!
      const y = b0 * x + s1!
      s1 = b1 * x - a1 * y + s2!
      s2 = b2 * x - a2 * y
      const z = y + h1!
      h1 = h2! - 2 * y - c1 * z
      h2 = y - c2 * z
      sum += z * z
    }
    state.set([s1!, s2!, h1!, h2!])
    // In silence, sums decay into subnormal numbers, which are slow to process.
    for (let i = 0; i < 4; i++) if (Math.abs(state[i]!) < 1e-30) state[i] = 0
    return sum
  }
}

/** `y[n] = b0 x[n] + b1 x[n-1] + b2 x[n-2] - a1 y[n-1] - a2 y[n-2]` */
interface Biquad {
  b0: number
  b1: number
  b2: number
  a1: number
  a2: number
}

function shelf(sampleRate: number): Biquad {
  const gain = 10 ** (3.999843853973347 / 20)
  const root = gain ** 0.4996667741545416
  const k = Math.tan((Math.PI * 1681.974450955533) / sampleRate)
  const q = 0.7071752369554196
  const a0 = 1 + k / q + k * k
  return {
    b0: (gain + (root * k) / q + k * k) / a0,
    b1: (2 * (k * k - gain)) / a0,
    b2: (gain - (root * k) / q + k * k) / a0,
    a1: (2 * (k * k - 1)) / a0,
    a2: (1 - k / q + k * k) / a0,
  }
}

function highPass(sampleRate: number): Biquad {
  const k = Math.tan((Math.PI * 38.13547087602444) / sampleRate)
  const q = 0.5003270373238773
  const a0 = 1 + k / q + k * k
  return { b0: 1, b1: -2, b2: 1, a1: (2 * (k * k - 1)) / a0, a2: (1 - k / q + k * k) / a0 }
}
