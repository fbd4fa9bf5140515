import { createSimdModule, valueTypes, type Code } from './simd-module.js'

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
    { name: 'dot', parameters: [i32, i32, i32], results: [f32], locals: [[2, v128]], body: body() },
  ])
  return Object.assign((a: number, b: number, length: number) => functions.dot(a * 4, b * 4, length * 4), { memory })
}

/*
 * The program, in the text format (opcodes: see `Code`):
 *
 *   (func (export "dot") (param $a i32) (param $b i32) (param $end i32) (result f32)
 *     (local $low v128) (local $high v128)
 *     $end = $b + $end
 *     loop
 *       $low  += v128.load($a)    * v128.load($b)
 *       $high += v128.load($a+16) * v128.load($b+16)
 *       $a += 32
 *       $b += 32
 *       br_if 0 ($b < $end)
 *     end
 *     $low += $high
 *     return the sum of $low's four lanes)
 */
const a = 0
const b = 1
const end = 2
const low = 3
const high = 4

const { i32, f32, v128 } = valueTypes

const get = (local: number): Code => [0x20, local]
const set = (local: number): Code => [0x21, local]
const tee = (local: number): Code => [0x22, local]
const i32Const = (value: number): Code => [0x41, value]
const i32Add: Code = [0x6a]
const i32LessUnsigned: Code = [0x49]
const f32Add: Code = [0x92]
const loop: Code = [0x03, 0x40]
const branchIf = (depth: number): Code => [0x0d, depth]
const endOfBlock: Code = [0x0b]
const load = (offset: number): Code => [0xfd, 0x00, 2, offset]
const lane = (index: number): Code => [0xfd, 0x1f, index]
const f32x4Add: Code = [0xfd, 0xe4, 0x01]
const f32x4Multiply: Code = [0xfd, 0xe6, 0x01]

function body(): Code {
  const accumulate = (sum: number, offset: number) =>
    [get(sum), get(a), load(offset), get(b), load(offset), f32x4Multiply, f32x4Add, set(sum)].flat()
  const advance = (pointer: number) => [get(pointer), i32Const(dotProductStep * 4), i32Add].flat()
  return [
    get(b), get(end), i32Add, set(end),
    loop,
    accumulate(low, 0), accumulate(high, 16),
    advance(a), set(a),
    advance(b), tee(b), get(end), i32LessUnsigned, branchIf(0),
    endOfBlock,
    get(low), get(high), f32x4Add, set(low),
    get(low), lane(0), get(low), lane(1), f32Add, get(low), lane(2), f32Add, get(low), lane(3), f32Add,
    endOfBlock,
  ].flat()
}
