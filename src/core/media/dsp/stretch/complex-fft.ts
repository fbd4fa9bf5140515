/**
 * Complex FFT of a power of two in plain TypeScript (Stockham, radix 4), for code that must also run where WebAssembly
 * cannot be loaded, such as an `AudioWorklet`. Unscaled; real and imaginary parts are apart.
 */
export class ComplexFft {
  readonly size: number
  readonly #cosines: Float64Array
  readonly #sines: Float64Array
  readonly #re: Float64Array
  readonly #im: Float64Array

  /** @throws RangeError when the size is no power of two from 4 on */
  constructor(size: number) {
    if (size < 4 || Math.log2(size) % 1 !== 0)
      throw new RangeError(`An FFT of ${size} points is not supported: use a power of two from 4 on.`)
    this.size = size
    this.#re = new Float64Array(size)
    this.#im = new Float64Array(size)
    const angles = Float64Array.from({ length: size }, (_, index) => (2 * Math.PI * index) / size)
    this.#cosines = angles.map(Math.cos)
    this.#sines = angles.map(Math.sin)
  }

  /** In place. The inverse is the same with `re` and `im` exchanged, and gives `size` times the signal. */
  transform(re: Float64Array, im: Float64Array): void {
    let [fromRe, fromIm, toRe, toIm] = [re, im, this.#re, this.#im]
    let stride = 1
    for (; 4 * stride <= this.size; stride *= 4) {
      this.#quarters(fromRe, fromIm, toRe, toIm, stride)
      ;[fromRe, fromIm, toRe, toIm] = [toRe, toIm, fromRe, fromIm]
    }
    // The last step of sizes that are no power of four.
    if (stride < this.size) {
      halves(fromRe, fromIm, toRe, toIm)
      ;[fromRe, fromIm] = [toRe, toIm]
    }
    if (fromRe === re) return
    re.set(fromRe)
    im.set(fromIm)
  }

  #quarters(fromRe: Float64Array, fromIm: Float64Array, toRe: Float64Array, toIm: Float64Array, stride: number): void {
    const apart = this.size / 4
    const cosines = this.#cosines
    const sines = this.#sines
    for (let turn = 0; turn < apart; turn += stride) {
      const c1 = cosines[turn]!
      const s1 = sines[turn]!
      const c2 = cosines[2 * turn]!
      const s2 = sines[2 * turn]!
      const c3 = cosines[3 * turn]!
      const s3 = sines[3 * turn]!
      for (let i = turn; i < turn + stride; i++) {
        const sumRe = fromRe[i]! + fromRe[i + 2 * apart]!
        const sumIm = fromIm[i]! + fromIm[i + 2 * apart]!
        const differenceRe = fromRe[i]! - fromRe[i + 2 * apart]!
        const differenceIm = fromIm[i]! - fromIm[i + 2 * apart]!
        const oddSumRe = fromRe[i + apart]! + fromRe[i + 3 * apart]!
        const oddSumIm = fromIm[i + apart]! + fromIm[i + 3 * apart]!
        // The difference of the odd ones times i.
        const turnedRe = fromIm[i + 3 * apart]! - fromIm[i + apart]!
        const turnedIm = fromRe[i + apart]! - fromRe[i + 3 * apart]!
        const to = i + 3 * turn
        toRe[to] = sumRe + oddSumRe
        toIm[to] = sumIm + oddSumIm
        const re1 = differenceRe - turnedRe
        const im1 = differenceIm - turnedIm
        toRe[to + stride] = re1 * c1 + im1 * s1
        toIm[to + stride] = im1 * c1 - re1 * s1
        const re2 = sumRe - oddSumRe
        const im2 = sumIm - oddSumIm
        toRe[to + 2 * stride] = re2 * c2 + im2 * s2
        toIm[to + 2 * stride] = im2 * c2 - re2 * s2
        const re3 = differenceRe + turnedRe
        const im3 = differenceIm + turnedIm
        toRe[to + 3 * stride] = re3 * c3 + im3 * s3
        toIm[to + 3 * stride] = im3 * c3 - re3 * s3
      }
    }
  }
}

function halves(fromRe: Float64Array, fromIm: Float64Array, toRe: Float64Array, toIm: Float64Array): void {
  const half = fromRe.length / 2
  for (let i = 0; i < half; i++) {
    toRe[i] = fromRe[i]! + fromRe[i + half]!
    toIm[i] = fromIm[i]! + fromIm[i + half]!
    toRe[i + half] = fromRe[i]! - fromRe[i + half]!
    toIm[i + half] = fromIm[i]! - fromIm[i + half]!
  }
}
