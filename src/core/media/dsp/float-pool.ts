/**
 * Large buffers that are reused instead of being allocated for every segment. `take` returns arrays that hold old data.
 * `give` returns a buffer to the pool; it may have been transferred to another thread and back as a new array.
 */
export class FloatPool {
  readonly #free: ArrayBuffer[] = []

  take(length: number): Float32Array<ArrayBuffer> {
    const bytes = length * Float32Array.BYTES_PER_ELEMENT
    const index = this.#free.findIndex((buffer) => buffer.byteLength >= bytes)
    const buffer = index < 0 ? new ArrayBuffer(bytes) : this.#free.splice(index, 1)[0]
    return new Float32Array(buffer!, 0, length)
  }

  give(array: Float32Array<ArrayBuffer>): void {
    this.#free.push(array.buffer)
  }
}
