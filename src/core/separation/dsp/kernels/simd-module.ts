import { type Code, unsigned } from './simd-code.js'

export const valueTypes = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const

export interface SimdFunction {
  name: string
  /** Value types. */
  parameters: Code
  results: Code
  /** Number and type of further locals. */
  locals?: readonly (readonly [count: number, type: number])[]
  /** Instructions, with the closing `end`. */
  body: Code
}

export interface SimdModule {
  /** The whole memory as floats; pointers count bytes. */
  memory: Float32Array
  functions: Record<string, (...parameters: number[]) => number>
}

/** Compiles functions over a memory with room for so many floats. For the few loops that JavaScript runs ten times slower. */
export function createSimdModule(floats: number, functions: readonly SimdFunction[]): SimdModule {
  const { Memory, Instance } = webAssembly
  const memory = new Memory({ initial: Math.ceil((floats * 4) / 65_536) })
  const instance = new Instance(compiled(functions), { host: { memory } })
  return { memory: new Float32Array(memory.buffer), functions: instance.exports }
}

/** Programs by their bytes. Code becomes fast only after some time of use, which should not begin anew with every track. */
const programs = new Map<string, object>()

function compiled(functions: readonly SimdFunction[]): object {
  const bytes = moduleBytes(functions)
  const key = Buffer.from(bytes).toString('latin1')
  let program = programs.get(key)
  if (!program) programs.set(key, (program = new webAssembly.Module(bytes)))
  return program
}

/** What is used of the global `WebAssembly`, which the types of Node.js do not describe. */
interface WebAssemblyApi {
  Memory: new (size: { initial: number }) => { buffer: ArrayBuffer }
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { exports: SimdModule['functions'] }
}

const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly

function moduleBytes(functions: readonly SimdFunction[]): Uint8Array {
  const types = functions.map(({ parameters, results }) => [0x60, ...sized(parameters), ...sized(results)])
  const importedMemory = [...name('host'), ...name('memory'), 2, 0, 1]
  const exported = functions.map((each, index) => [...name(each.name), 0, index])
  const bodies = functions.map(({ locals = [], body }) => sized([...vector(locals), ...body]))
  const header = [...Buffer.from('\0asm', 'latin1'), 1, 0, 0, 0]
  return Uint8Array.from([
    ...header,
    ...section(1, vector(types)),
    ...section(2, vector([importedMemory])),
    ...section(3, vector(functions.map((_, index) => [index]))),
    ...section(7, vector(exported)),
    ...section(10, vector(bodies)),
  ])
}

const section = (id: number, body: Code): Code => [id, ...sized(body)]
const vector = (items: readonly Code[]): Code => [...unsigned(items.length), ...items.flat()]
const sized = (body: Code): Code => [...unsigned(body.length), ...body]
const name = (text: string): Code => sized([...Buffer.from(text, 'latin1')])
