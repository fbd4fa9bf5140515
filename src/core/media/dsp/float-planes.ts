/** Planes that are reused and overwritten for every block. */
export class FloatPlanes {
  readonly #planes: Float32Array[] = []

  take(channelCount: number, sampleCount: number): Float32Array[] {
    return Array.from({ length: channelCount }, (_, channel) => {
      let plane = this.#planes[channel]
      if (!plane || plane.length < sampleCount) this.#planes[channel] = plane = new Float32Array(sampleCount)
      return plane.subarray(0, sampleCount)
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
