import { open, stat } from 'node:fs/promises'
import type { TensorInfo } from './network.js'

/** Larger files are left to the runtime: the copy in memory would cost as much as it could save. */
const mostBytes = 512 * 2 ** 20
/** HTDemucs has 299 nodes to replace, of 200 bytes each. */
const mostAppended = 2 ** 20

/**
 * Returns a network, and the shapes that its file states for the inputs whose sizes were opened. Undefined for networks
 * that are large, or have one input, no fixed sizes or weights in other files.
 */
export async function readWithOpenSizes(path: string) {
  const { size } = await stat(path)
  if (size > mostBytes) return undefined
  // With room for the appendix: no second copy of the file.
  const memory = new Uint8Array(size + mostAppended)
  const onnx = memory.subarray(0, size)
  const file = await open(path)
  try {
    await file.read(onnx)
  } finally {
    await file.close()
  }
  const shapes = openSizes(onnx)
  const [opened] = shapes.keys()
  if (opened === undefined || hasOtherFiles(onnx)) return undefined
  const appendix = withoutReshapes(onnx, opened)
  if (appendix.length > mostAppended) return undefined
  memory.set(appendix, size)
  return { onnx: memory.subarray(0, size + appendix.length), shapes }
}

/**
 * Makes the sizes of all inputs but the first dynamic, in the bytes of an ONNX file (a protobuf), and returns the
 * shapes of these inputs as the file states them.
 *
 * If the sizes of all layers are known, onnxruntime reserves the buffer of an early layer for a late one of the same
 * shape, and holds it in between: three runs of HTDemucs took 3.7 GiB, and without the sizes of its spectrum 2.4 GiB,
 * in the same time and with the same results. (Without those of its wave, too, it would be 2.1 GiB, but the runtime
 * then chooses other kernels, and results differ by rounding.)
 */
export function openSizes(onnx: Uint8Array): Map<string, TensorInfo['shape']> {
  const shapes = new Map<string, TensorInfo['shape']>()
  const whole = { at: 0, end: onnx.length }
  // Older files list the weights among the inputs.
  const weights = new Set([...within(onnx, whole, graph, weight.self, weight.name)].map((name) => textOf(onnx, name)))
  let isFirst = true
  for (const each of within(onnx, whole, graph, input.self)) {
    const [name] = [...within(onnx, each, input.name)].map((field) => textOf(onnx, field))
    if (name === undefined || weights.has(name)) continue
    if (isFirst) {
      isFirst = false
      continue
    }
    const dimensions = [...within(onnx, each, ...dimension)]
    const sizes = dimensions.map((part) => within(onnx, part, dimensionSize).next().value)
    if (!sizes.some(Boolean)) continue
    const shape = sizes.map((size) => (size ? varint(onnx, size.at)[0] : 'any'))
    shapes.set(name, shape)
    // Retagged as an unknown field of the same length, which all readers skip.
    for (const size of sizes) if (size) onnx[size.tag] = unknown << 3
  }
  return shapes
}

/**
 * Hides every `Reshape` in the bytes of an ONNX file, and returns the bytes to append: the same nodes, with a zero
 * added to their shapes that is only known when the network runs. Otherwise the runtime would know all sizes that
 * follow from these shapes, and reserve buffers as `openSizes` says: two runs of HTDemucs take 1.2 GB instead of 2.5,
 * and agree to 115 dB.
 *
 * @param opened an input with dynamic sizes
 */
export function withoutReshapes(onnx: Uint8Array, opened: string): Uint8Array {
  const [size, zero] = ['stemwork:size', 'stemwork:zero']
  const appended = [nodeOf('Size', [opened], size), nodeOf('Sub', [size, size], zero)]
  const hidden = new Set<string>()
  for (const each of within(onnx, { at: 0, end: onnx.length }, graph, node.self)) {
    const [operator] = within(onnx, each, node.operator)
    const [, shape] = within(onnx, each, node.input)
    if (!operator || !shape || textOf(onnx, operator) !== 'Reshape') continue
    const name = textOf(onnx, shape)
    const sum = `stemwork:${name}`
    if (!hidden.has(name)) appended.push(nodeOf('Add', [name, zero], sum))
    hidden.add(name)
    const [before, behind] = [onnx.subarray(each.at, shape.tag), onnx.subarray(shape.end, each.end)]
    appended.push(bytesField(node.self, before, textField(node.input, sum), behind))
    onnx[each.tag] = (unknownInGraph << 3) | 2
  }
  // Protobuf readers merge the parts of a graph, and the runtime sorts the nodes.
  return bytesField(graph, ...appended)
}

function hasOtherFiles(onnx: Uint8Array): boolean {
  const places = within(onnx, { at: 0, end: onnx.length }, graph, weight.self, weight.place)
  return [...places].some(({ at }) => onnx[at] !== 0)
}

// Numbers of fields in onnx.proto.
const graph = 7
const node = { self: 1, input: 1, output: 2, operator: 4 }
const weight = { self: 5, name: 8, place: 14 }
const input = { self: 11, name: 1 }
/** Path from an input to its dimensions: its type, the tensor's type, the shape, the dimensions. */
const dimension = [2, 1, 2, 1] as const
const dimensionSize = 1
const unknown = 15
const unknownInGraph = 6

/** The content of a field, and the position of its tag. */
interface Field {
  tag: number
  at: number
  end: number
}

/** All fields at the end of a path of fields. */
function* within(bytes: Uint8Array, part: Omit<Field, 'tag'>, ...path: number[]): Generator<Field, void, undefined> {
  const [wanted, ...rest] = path
  for (let at = part.at; at < part.end;) {
    const [tag, behind] = varint(bytes, at)
    const field = { tag: at, ...contentAt(bytes, behind, tag & 7) }
    at = field.end
    if (tag >>> 3 !== wanted) continue
    if (rest.length === 0) yield field
    else yield* within(bytes, field, ...rest)
  }
}

/** By the wire types of protobuf: numbers of any length, of 8 and of 4 bytes, and bytes after their length. */
function contentAt(bytes: Uint8Array, at: number, wireType: number): Omit<Field, 'tag'> {
  if (wireType === 2) {
    const [length, behind] = varint(bytes, at)
    return { at: behind, end: behind + length }
  }
  if (wireType === 0) return { at, end: varint(bytes, at)[1] }
  return { at, end: at + (wireType === 1 ? 8 : 4) }
}

/** The number, and the position after it. */
function varint(bytes: Uint8Array, from: number): [number, number] {
  let value = 0
  let scale = 1
  for (let at = from; ; at++, scale *= 128) {
    const byte = bytes[at] ?? 0
    value += (byte & 127) * scale
    if (byte < 128) return [value, at + 1]
  }
}

function textOf(bytes: Uint8Array, { at, end }: Field): string {
  return new TextDecoder().decode(bytes.subarray(at, end))
}

function nodeOf(operator: string, inputs: readonly string[], output: string): Uint8Array {
  const names = inputs.map((name) => textField(node.input, name))
  return bytesField(node.self, ...names, textField(node.output, output), textField(node.operator, operator))
}

function textField(number: number, text: string): Uint8Array {
  return bytesField(number, new TextEncoder().encode(text))
}

function bytesField(number: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const head = [(number << 3) | 2]
  let length = parts.reduce((sum, part) => sum + part.length, 0)
  for (; length > 127; length = Math.floor(length / 128)) head.push((length % 128) | 128)
  return Buffer.concat([Uint8Array.from([...head, length]), ...parts])
}
