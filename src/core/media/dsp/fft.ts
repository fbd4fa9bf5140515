import { requireSimd } from './kernels/kernel.js'

/**
 * Real FFTs of a batch of frames, in the memory of the pffft WebAssembly module (single precision, SIMD: the round trip
 * is exact to about 3e-7 of the peak). `size` must be a multiple of 32 with no prime factors other than 2, 3 and 5.
 *
 * A caller writes frames into `time()`, calls `forward`, and reads `spectrum()`; or the other way round with `inverse`.
 * Both views hold `batch` rows of `size` floats. A row of the spectrum is
 * `[re 0, re size/2, re 1, im 1, re 2, im 2, ...]` (the imaginary parts of bins 0 and size/2 are zero). Unscaled:
 * `inverse(forward(x)) = size * x`.
 */
export class RealFft {
  readonly size: number
  readonly batch: number
  readonly #module: PffftModule
  readonly #setup: number
  readonly #time: number
  readonly #spectrum: number
  readonly #work: number

  private constructor(module: PffftModule, size: number, batch: number, setup: number) {
    this.size = size
    this.batch = batch
    this.#module = module
    this.#setup = setup
    const rowBytes = size * Float32Array.BYTES_PER_ELEMENT
    this.#time = module._pffft_aligned_malloc(rowBytes * batch)
    this.#spectrum = module._pffft_aligned_malloc(rowBytes * batch)
    this.#work = module._pffft_aligned_malloc(rowBytes)
  }

  /** @throws RangeError when the size is not supported. */
  static async create(size: number, batch = 1): Promise<RealFft> {
    pffft ??= loadPffft()
    const module = await pffft
    const setup = isSupported(size) ? module._pffft_new_setup(size, 0) : 0
    if (setup === 0) {
      throw new RangeError(
        `An FFT of ${size} points is not supported: use a multiple of 32 with factors 2, 3 and 5 only.`,
      )
    }
    return new RealFft(module, size, batch, setup)
  }

  /**
   * Valid until the next `RealFft.create` in this process, which may move the memory. Call it again for every batch.
   */
  time(): Float32Array {
    return this.#view(this.#time)
  }

  /** Valid as long as the view from `time()`. */
  spectrum(): Float32Array {
    return this.#view(this.#spectrum)
  }

  forward(frameCount: number): void {
    this.#transform(frameCount, this.#time, this.#spectrum, 0)
  }

  inverse(frameCount: number): void {
    this.#transform(frameCount, this.#spectrum, this.#time, 1)
  }

  /** Frees its memory inside the module; the object must not be used afterwards. */
  close(): void {
    for (const pointer of [this.#time, this.#spectrum, this.#work]) this.#module._pffft_aligned_free(pointer)
    this.#module._pffft_destroy_setup(this.#setup)
  }

  #view(pointer: number): Float32Array {
    const first = pointer / Float32Array.BYTES_PER_ELEMENT
    return this.#module.HEAPF32.subarray(first, first + this.size * this.batch)
  }

  #transform(frameCount: number, from: number, to: number, direction: 0 | 1): void {
    const rowBytes = this.size * Float32Array.BYTES_PER_ELEMENT
    for (let frame = 0; frame < frameCount; frame++) {
      const offset = frame * rowBytes
      this.#module._pffft_transform_ordered(this.#setup, from + offset, to + offset, this.#work, direction)
    }
  }
}

/** `w[n] = 0.5 - 0.5 cos(2 pi n / size)`. */
export function periodicHann(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / size))
}

/** Pointers are byte offsets into the module's memory. */
interface PffftModule {
  /** Replaced by a new view when the memory grows. */
  readonly HEAPF32: Float32Array
  _pffft_new_setup(size: number, transform: 0 | 1): number
  _pffft_destroy_setup(setup: number): void
  _pffft_aligned_malloc(bytes: number): number
  _pffft_aligned_free(pointer: number): void
  _pffft_transform_ordered(setup: number, input: number, output: number, work: number, direction: 0 | 1): void
}

let pffft: Promise<PffftModule> | undefined

async function loadPffft(): Promise<PffftModule> {
  requireSimd()
  // @ts-expect-error The package has no types; `PffftModule` is the part that is used.
  const loaded = (await import('@echogarden/pffft-wasm/simd')) as { default: () => Promise<PffftModule> }
  return loaded.default()
}

function isSupported(size: number): boolean {
  if (size <= 0 || size % 32 !== 0) return false
  let rest = size
  for (const factor of [2, 3, 5]) while (rest % factor === 0) rest /= factor
  return rest === 1
}
