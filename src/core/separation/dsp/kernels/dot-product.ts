import { advance, type Code, end, f32x4, get, load, set, whileLeft } from './simd-code.js'
import { createSimdModule, valueTypes } from './simd-module.js'

/** Memory of floats with a tiny WebAssembly program that multiplies and sums runs of it: 12 times as fast as JavaScript. */
export interface DotProduct {
  memory: Float32Array
  /** Sum of `memory[a + k] * memory[b + k]` for k below `length`, a multiple of `dotProductStep`. Positions count floats. */
  (a: number, b: number, length: number): number
}

/** Floats per step of the loop: two vectors of four. */
export const dotProductStep = 8

/** Makes a program with room for that many floats. */
export function createDotProduct(floats: number): DotProduct {
  const { memory, functions } = createSimdModule(floats, [
    {
      name: 'dot',
      parameters: [valueTypes.i32, valueTypes.i32, valueTypes.i32],
      results: [valueTypes.f32],
      locals: [[2, valueTypes.v128]],
      body: body(),
    },
  ])
  return Object.assign((a: number, b: number, length: number) => functions.dot(a * 4, b * 4, length * 4), { memory })
}

const a = 0
const b = 1
const left = 2
const low = 3
const high = 4

/** A loop over the pointers `a` and `b` and a byte count; the sums are kept in two vectors. */
function body(): Code {
  const multiplied = (bytes: number) => f32x4.multiply(load(get(a), bytes), load(get(b), bytes))
  const bytes = dotProductStep * 4
  const turn = [
    ...set(low, f32x4.add(get(low), multiplied(0))),
    ...set(high, f32x4.add(get(high), multiplied(16))),
    ...advance(a, bytes),
    ...advance(b, bytes),
  ]
  return [...whileLeft(left, bytes, turn), ...set(low, f32x4.add(get(low), get(high))), ...f32x4.sum(low), ...end]
}
