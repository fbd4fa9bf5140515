/** Bytes of WebAssembly (opcodes and encoding: WebAssembly core specification 2.0, chapter 5). */
export type Code = readonly number[]

// The words that kernels are written in: each gives the bytes of an instruction behind those of its operands. Locals have numbers
// below 128.

type Binary = (a: Code, b: Code) => Code

const simd = (opcode: number): Code => [0xfd, ...unsigned(opcode)]
const unary =
  (opcode: number) =>
  (a: Code): Code => [...a, ...simd(opcode)]
const binary =
  (opcode: number): Binary =>
  (a, b) => [...a, ...b, ...simd(opcode)]
/** The four places of a local brought together by an instruction for two numbers. */
const fold =
  (extract: number, instruction: number) =>
  (local: number): Code => {
    const place = (index: number): Code => [0x20, local, ...simd(extract), index]
    return [1, 2, 3].reduce((sum, index) => [...sum, ...place(index), instruction], place(0))
  }

export const f32x4 = {
  splat: unary(0x13),
  greater: binary(0x44),
  /** False for NaN. */
  notLess: binary(0x46),
  floor: unary(0x68),
  squareRoot: unary(0xe3),
  add: binary(0xe4),
  subtract: binary(0xe5),
  multiply: binary(0xe6),
  divide: binary(0xe7),
  /** `b` where it is larger, else `a`; a NaN in `b` is never larger. */
  larger: binary(0xeb),
  sum: fold(0x1f, 0x92),
  largest: fold(0x1f, 0x97),
}
export const f64x2 = {
  splat: unary(0x14),
  greater: binary(0x4a),
  squareRoot: unary(0xef),
  add: binary(0xf0),
  subtract: binary(0xf1),
  multiply: binary(0xf2),
  divide: binary(0xf3),
  larger: binary(0xf7),
}
export const i32x4 = {
  subtract: binary(0xb1),
  sum: fold(0x1b, 0x6a),
  /** Floats towards zero, saturating; NaN becomes 0. */
  truncate: unary(0xf8),
  /** Two vectors to one of 16-bit integers, saturating. */
  narrow: binary(0x85),
}

export const get = (local: number): Code => [0x20, local]
export const set = (local: number, value: Code): Code => [...value, 0x21, local]
export const i32 = (value: number): Code => [0x41, ...signed(value)]
export const f64 = (value: number): Code => [0x44, ...new Uint8Array(Float64Array.of(value).buffer)]
export const f32 = (value: number): Code => [0x43, ...new Uint8Array(Float32Array.of(value).buffer)]
/** A parameter in double precision. */
export const promoted = (local: number): Code => [...get(local), 0xbb]
/** Moves a pointer. */
export const advance = (pointer: number, bytes: number): Code => set(pointer, [...get(pointer), ...i32(bytes), 0x6a])

/** Four floats from `bytes` behind the pointer; of any alignment, as all of these. */
export const load = (pointer: Code, bytes: number): Code => [...pointer, ...simd(0x00), 2, ...unsigned(bytes)]
export const store = (pointer: Code, bytes: number, value: Code): Code => [
  ...pointer,
  ...value,
  ...simd(0x0b),
  2,
  ...unsigned(bytes),
]
/** Two floats in double precision, and back. */
export const loadDoubles = (pointer: Code, bytes: number): Code => [
  ...pointer,
  ...simd(0x5d),
  2,
  ...unsigned(bytes),
  ...simd(0x5f),
]
export const storeDoubles = (pointer: Code, bytes: number, value: Code): Code => [
  ...pointer,
  ...value,
  ...simd(0x5e),
  ...simd(0x5b),
  2,
  ...unsigned(bytes),
  0,
]

export const and = binary(0x4e)
export const or = binary(0x50)
/** Picks 16 of the 32 bytes of two vectors. */
export const shuffleBytes = (a: Code, b: Code, bytes: readonly number[]): Code => [...a, ...b, ...simd(0x0d), ...bytes]
/** Picks four of the eight floats of two vectors. */
export const shuffle = (a: Code, b: Code, ...lanes: number[]): Code =>
  shuffleBytes(
    a,
    b,
    lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)),
  )

/** Runs the body, which must not touch the counter, as long as that many are left. */
export const whileLeft = (counter: number, step: number, body: Code): Code => [
  ...[0x02, 0x40, 0x03, 0x40],
  ...[...get(counter), ...i32(step), 0x48, 0x0d, 1],
  ...body,
  ...advance(counter, -step),
  ...[0x0c, 0, 0x0b, 0x0b],
]
/** Closes a function. */
export const end: Code = [0x0b]

/** LEB128. */
export function unsigned(value: number): Code {
  return value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)]
}

/** LEB128 of a signed number. */
function signed(value: number): Code {
  return value >= -64 && value < 64 ? [value & 127] : [(value & 127) | 128, ...signed(value >> 7)]
}
