/**
 * The formulas of the architectures in double precision, written for clarity and sharing no code with the library,
 * whose
 * results are compared with theirs.
 */
export type Complex = { re: Float64Array; im: Float64Array }

/** Discrete Fourier transform, unscaled: one pass for each prime factor, in the self-sorting order of Stockham. */
export function fft(input: Complex, sign: -1 | 1 = -1): Complex {
  const size = input.re.length
  if (input.re.every((value) => value === 0) && input.im.every((value) => value === 0)) return input
  const { cos, sin } = rotations(size)
  let from: Complex = { re: input.re.slice(), im: input.im.slice() }
  let to: Complex = { re: new Float64Array(size), im: new Float64Array(size) }
  for (let done = 1; done < size;) {
    const radix = [2, 3, 5].find((factor) => (size / done) % factor === 0) ?? size / done
    pass(from, to, done, radix)
    ;[from, to] = [to, from]
    done *= radix
  }
  return from

  function pass({ re, im }: Complex, { re: outRe, im: outIm }: Complex, done: number, radix: number): void {
    const stride = size / radix
    const turn = size / (done * radix)
    for (let block = 0; block < stride; block += done) {
      for (let inner = 0; inner < done; inner++) {
        for (let out = 0; out < radix; out++) {
          const step = (inner * turn + out * stride) % size
          let sumRe = re[block + inner]!
          let sumIm = im[block + inner]!
          for (let part = 1, at = block + inner + stride, angle = step; part < radix; part++, at += stride) {
            const turnedSin = sign * sin[angle]!
            sumRe += re[at]! * cos[angle]! - im[at]! * turnedSin
            sumIm += re[at]! * turnedSin + im[at]! * cos[angle]!
            angle += step
            if (angle >= size) angle -= size
          }
          outRe[block * radix + inner + out * done] = sumRe
          outIm[block * radix + inner + out * done] = sumIm
        }
      }
    }
  }
}

const rotationsBySize = new Map<number, { cos: Float64Array; sin: Float64Array }>()

function rotations(size: number) {
  const known = rotationsBySize.get(size)
  if (known) return known
  const angles = Array.from({ length: size }, (_, i) => (2 * Math.PI * i) / size)
  const made = { cos: Float64Array.from(angles, Math.cos), sin: Float64Array.from(angles, Math.sin) }
  rotationsBySize.set(size, made)
  return made
}

export interface ReferenceStft {
  size: number
  hop: number
  window: Float64Array
}

export function hann(size: number): Float64Array {
  return Float64Array.from({ length: size }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / size))
}

/** Frames that start at multiples of the hop; bins 0 to size / 2. */
export function stft(signal: Float64Array, { size, hop, window }: ReferenceStft): Complex[] {
  const frameCount = Math.floor((signal.length - size) / hop) + 1
  return Array.from({ length: frameCount }, (_, frame) => {
    const windowed = window.map((value, n) => value * signal[frame * hop + n]!)
    const { re, im } = fft({ re: windowed, im: new Float64Array(size) })
    return { re: re.slice(0, size / 2 + 1), im: im.slice(0, size / 2 + 1) }
  })
}

export function inverseStft(frames: Complex[], { size, hop, window }: ReferenceStft): Float64Array {
  const length = (frames.length - 1) * hop + size
  const sum = new Float64Array(length)
  const weights = new Float64Array(length)
  frames.forEach(({ re, im }, frame) => {
    const whole: Complex = { re: new Float64Array(size), im: new Float64Array(size) }
    for (let bin = 0; bin <= size / 2; bin++) {
      whole.re[bin] = re[bin]!
      whole.im[bin] = bin === 0 || bin === size / 2 ? 0 : im[bin]!
      if (bin === 0 || bin === size / 2) continue
      whole.re[size - bin] = re[bin]!
      whole.im[size - bin] = -im[bin]!
    }
    const samples = fft(whole, 1).re
    for (let n = 0; n < size; n++) {
      sum[frame * hop + n]! += (samples[n]! / size) * window[n]!
      weights[frame * hop + n]! += window[n]! ** 2
    }
  })
  return sum.map((value, i) => value / Math.max(weights[i]!, 1e-8))
}

/** Sample -i is sample i, sample length - 1 + i is sample length - 1 - i; beyond that, there is silence. */
export function reflectPad(signal: ArrayLike<number>, before: number, after: number): Float64Array {
  const { length } = signal
  return Float64Array.from({ length: before + length + after }, (_, i) => {
    const once = Math.abs(i - before)
    const twice = once < length ? once : 2 * length - 2 - once
    return twice >= 0 && twice < length ? signal[twice]! : 0
  })
}

/** A whole track after gains for its bins: the centred STFT, the gains, which may be complex, and the inverse. */
export function maskTrack(
  track: ArrayLike<number>,
  size: number,
  hop: number,
  gain: (bin: number) => number | [number, number],
): Float64Array {
  const reference = { size, hop, window: hann(size) }
  const spectrum = stft(reflectPad(track, size / 2, size / 2), reference)
  const samples = inverseStft(
    spectrum.map((frame) => masked(frame, gain)),
    reference,
  )
  return Float64Array.from({ length: track.length }, (_, i) => samples[i + size / 2] ?? 0)
}

export function masked({ re, im }: Complex, gain: (bin: number) => number | [number, number]): Complex {
  const out: Complex = { re: new Float64Array(re.length), im: new Float64Array(im.length) }
  for (let bin = 0; bin < re.length; bin++) {
    const factor = gain(bin)
    const [a, b] = typeof factor === 'number' ? [factor, 0] : factor
    out.re[bin] = re[bin]! * a - im[bin]! * b
    out.im[bin] = re[bin]! * b + im[bin]! * a
  }
  return out
}
