/** The part of a stream between the samples `start` and `end`: it grows at its end and is cut at its start. */
export class SampleWindow {
  start: number
  end: number
  readonly planes: Float32Array[]

  /** @param capacity initial room in samples */
  constructor(channelCount: number, capacity: number, start = 0) {
    this.start = this.end = start
    this.planes = Array.from({ length: channelCount }, () => new Float32Array(capacity))
  }

  append(channels: readonly Float32Array[]): void {
    const at = this.end - this.start
    const needed = at + channels[0]!.length
    for (const [channel, samples] of channels.entries()) {
      if (this.planes[channel]!.length < needed) this.planes[channel] = grown(this.planes[channel]!, 2 * needed)
      this.planes[channel]!.set(samples, at)
    }
    this.end += channels[0]!.length
  }

  /** Views of the samples `from` to `to`, valid until the next change. */
  views(from: number, to: number): Float32Array[] {
    return this.planes.map((plane) => plane.subarray(from - this.start, to - this.start))
  }

  dropBefore(position: number): void {
    const dropped = Math.min(position, this.end) - this.start
    if (dropped <= 0) return
    for (const plane of this.planes) plane.copyWithin(0, dropped, this.end - this.start)
    this.start += dropped
  }
}

/** A longer copy, filled up with zeros. */
export function grown(plane: Float32Array, length: number): Float32Array<ArrayBuffer> {
  const larger = new Float32Array(length)
  larger.set(plane)
  return larger
}
