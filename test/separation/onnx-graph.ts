/**
 * Writes tiny ONNX networks (float32, opset 17): an ONNX file is a protobuf of a model, its graph and the graph's
 * nodes.
 */
export interface GraphValue {
  name: string
  /** Dimensions; a string is a dimension that the caller chooses. */
  shape: (number | string)[]
}

export interface GraphNode {
  operator: string
  inputs: string[]
  outputs: string[]
  /** Integers, such as `axis`, lists of integers, such as `pads`, and strings. */
  attributes?: Record<string, number | readonly number[] | string>
}

export interface OnnxGraph {
  inputs: GraphValue[]
  outputs: GraphValue[]
  nodes: GraphNode[]
  /** Constants of float32, or of int64 for shapes. */
  constants?: { name: string; dims: number[]; values: ArrayLike<number>; type?: 'int64' }[]
}

export function onnxModel({ inputs, outputs, nodes, constants = [] }: OnnxGraph): Uint8Array {
  const graph = message(
    ...nodes.map((node, index) =>
      field(
        1,
        message(
          ...node.inputs.map((name) => text(1, name)),
          ...node.outputs.map((name) => text(2, name)),
          text(3, `node${index}`),
          text(4, node.operator),
          ...Object.entries(node.attributes ?? {}).map(([name, value]) =>
            field(5, message(text(1, name), ...attribute(value))),
          ),
        ),
      ),
    ),
    text(2, 'graph'),
    ...constants.map(({ name, dims, values, type }) =>
      field(
        5,
        message(
          ...dims.map((dim) => integer(1, dim)),
          integer(2, type === 'int64' ? int64 : float32),
          text(8, name),
          field(
            9,
            new Uint8Array(
              (type === 'int64' ? BigInt64Array.from(Array.from(values), BigInt) : Float32Array.from(values)).buffer,
            ),
          ),
        ),
      ),
    ),
    ...inputs.map((value) => field(11, valueInfo(value))),
    ...outputs.map((value) => field(12, valueInfo(value))),
  )
  return message(integer(1, 8), text(2, 'test'), field(7, graph), field(8, message(text(1, ''), integer(2, 17))))
}

/** A network from one tensor `[1, 4, frames, 9]` to another of the same shape: `output = input * gain`. */
export function gainNetwork(gain = 1): Uint8Array {
  const shape = [1, 4, 'frames', 9]
  return onnxModel({
    inputs: [{ name: 'mixture', shape }],
    outputs: [{ name: 'estimate', shape }],
    nodes: [{ operator: 'Mul', inputs: ['mixture', 'gain'], outputs: ['estimate'] }],
    constants: [{ name: 'gain', dims: [1, 1, 1, 1], values: [gain] }],
  })
}

/** A network of the embedded architecture with a band for each bin, whose masks do not depend on the input. */
export function maskNetwork(gain: (bin: number) => number = () => 1, bins = 2049): Uint8Array {
  const gains = Array.from({ length: bins }, (_, bin) => gain(bin))
  return onnxModel({
    inputs: [{ name: 'powers', shape: [1, 4, 'frames', bins] }],
    outputs: [{ name: 'masks', shape: [1, 2, 'frames', bins] }],
    nodes: [
      { operator: 'ReduceMax', inputs: ['powers'], outputs: ['loudest'], attributes: { axes: [1] } },
      { operator: 'Mul', inputs: ['loudest', 'nothing'], outputs: ['silence'] },
      { operator: 'Add', inputs: ['silence', 'gains'], outputs: ['masks'] },
    ],
    constants: [
      { name: 'nothing', dims: [1], values: [0] },
      { name: 'gains', dims: [1, 2, 1, bins], values: [...gains, ...gains] },
    ],
  })
}

const float32 = 1
const int64 = 7

/** Value and type. */
function attribute(value: number | readonly number[] | string): Uint8Array[] {
  if (typeof value === 'number') return [integer(3, value), integer(20, 2)]
  if (typeof value === 'string') return [text(4, value), integer(20, 3)]
  return [...value.map((each) => integer(8, each)), integer(20, 7)]
}

function valueInfo({ name, shape }: GraphValue): Uint8Array {
  const dims = shape.map((dim) => field(1, typeof dim === 'string' ? text(2, dim) : integer(1, dim)))
  return message(text(1, name), field(2, message(field(1, message(integer(1, float32), field(2, message(...dims)))))))
}

const message = (...fields: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(fields))
const integer = (number: number, value: number): Uint8Array => message(varint(number << 3), varint(value))
const field = (number: number, bytes: Uint8Array): Uint8Array =>
  message(varint((number << 3) | 2), varint(bytes.length), bytes)
const text = (number: number, value: string): Uint8Array => field(number, new TextEncoder().encode(value))

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128)
  return Uint8Array.from([...bytes, value])
}
