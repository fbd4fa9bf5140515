/** Planes that are reused and overwritten for every block. */
export class FloatPlanes {
  readonly #planes: Float32Array[] = []

  take(channelCount: number, sampleCount: number): Float32Array[] {
    return Array.from({ length: channelCount }, (_, channel) => {
      if ((this.#planes[channel]?.length ?? 0) < sampleCount) this.#planes[channel] = new Float32Array(sampleCount)
      return this.#planes[channel]!.subarray(0, sampleCount)
    })
  }

  /** `a - b`, sample by sample. */
  difference(a: readonly Float32Array[], b: readonly Float32Array[]): Float32Array[] {
    const planes = this.take(a.length, a[0]!.length)
    planes.forEach((plane, channel) => {
      const [from, without] = [a[channel], b[channel]]
      for (let i = 0; i < plane.length; i++) plane[i] = from![i]! - without![i]!
    })
    return planes
  }
}
