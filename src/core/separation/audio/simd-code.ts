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
/** Float instructions lie in the same order for both shapes. */
const floatShape = (comparisons: number, arithmetic: number, splat: number) => ({
  greater: binary(comparisons + 3),
  /** False for NaN. */
  notLess: binary(comparisons + 5),
  squareRoot: unary(arithmetic - 1),
  add: binary(arithmetic),
  subtract: binary(arithmetic + 1),
  multiply: binary(arithmetic + 2),
  divide: binary(arithmetic + 3),
  /** `b` where it is larger, else `a`; a NaN in `b` is never larger. */
  larger: binary(arithmetic + 7),
  splat: unary(splat),
})

export const f32x4 = { ...floatShape(0x41, 0xe4, 0x13), floor: unary(0x68) }
export const f64x2 = floatShape(0x47, 0xf0, 0x14)
export const i32x4 = {
  add: binary(0xae),
  subtract: binary(0xb1),
  /** Floats towards zero, saturating; NaN becomes 0. */
  truncate: unary(0xf8),
  /** Two vectors to one of 16-bit integers, saturating. */
  narrow: binary(0x85),
}

export const get = (local: number): Code => [0x20, local]
export const set = (local: number, value: Code): Code => [...value, 0x21, local]
export const i32 = (value: number): Code => [0x41, ...signed(value)]
export const f32 = (value: number): Code => [0x43, ...new Uint8Array(Float32Array.of(value).buffer)]
export const f64 = (value: number): Code => [0x44, ...new Uint8Array(Float64Array.of(value).buffer)]
/** Moves a pointer. */
export const advance = (pointer: number, bytes: number): Code => set(pointer, [...get(pointer), ...i32(bytes), 0x6a])

/** Four floats from `bytes` behind the pointer; of any alignment, as all of these. */
export const load = (pointer: Code, bytes: number): Code => [...pointer, ...simd(0x00), 2, ...unsigned(bytes)]
export const store = (pointer: Code, bytes: number, value: Code): Code => [...pointer, ...value, ...simd(0x0b), 2, ...unsigned(bytes)]
/** One float in all four places. */
export const loadSplat = (pointer: Code, bytes: number): Code => [...pointer, ...simd(0x09), 2, ...unsigned(bytes)]
/** Two floats in double precision. */
export const loadDoubles = (pointer: Code, bytes: number): Code => [...pointer, ...simd(0x5d), 2, ...unsigned(bytes), ...simd(0x5f)]

export const and = binary(0x4e)
export const or = binary(0x50)
/** Bits of `a` where the mask has ones, of `b` where it has zeros. */
export const select = (a: Code, b: Code, mask: Code): Code => [...a, ...b, ...mask, ...simd(0x52)]
/** Picks 16 of the 32 bytes of two vectors. */
export const shuffleBytes = (a: Code, b: Code, bytes: readonly number[]): Code => [...a, ...b, ...simd(0x0d), ...bytes]
/** Picks four of the eight floats of two vectors. */
export const shuffle = (a: Code, b: Code, ...lanes: number[]): Code =>
  shuffleBytes(a, b, lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)))
/** The sum of the four places, as one number. */
export const sumOfFloats = (local: number): Code => sumOfPlaces(local, 0x1f, 0x92)
export const sumOfIntegers = (local: number): Code => sumOfPlaces(local, 0x1b, 0x6a)

function sumOfPlaces(local: number, extract: number, add: number): Code {
  const place = (index: number): Code => [...get(local), ...simd(extract), index]
  return [1, 2, 3].reduce((sum, index) => [...sum, ...place(index), add], place(0))
}

/** Runs the body, which must not touch the counter, as long as that many are left. */
export const whileLeft = (counter: number, step: number, body: Code): Code => [
  ...[0x02, 0x40, 0x03, 0x40],
  ...[...get(counter), ...i32(step), 0x48, 0x0d, 1],
  ...body,
  ...advance(counter, -step),
  ...[0x0c, 0, 0x0b, 0x0b],
]
/** Runs the body if the counter is not zero. */
export const ifLeft = (counter: number, body: Code): Code => [...get(counter), 0x04, 0x40, ...body, 0x0b]
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
