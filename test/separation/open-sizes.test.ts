import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { importNative } from '../../src/core/models/session/native.js'
import { openSizes, readWithOpenSizes } from '../../src/core/models/session/open-sizes.js'
import { openSession } from '../../src/core/models/session/session.js'
import { onnxModel } from './onnx-graph.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

/** Two inputs, of which the second is longer than one byte can express. */
const two = () =>
  onnxModel({
    inputs: [
      { name: 'wave', shape: [1, 300] },
      { name: 'spectrum', shape: ['batch', 2, 300] },
    ],
    outputs: [{ name: 'sum', shape: ['batch', 2, 300] }],
    nodes: [{ operator: 'Add', inputs: ['wave', 'spectrum'], outputs: ['sum'] }],
  })
const one = () =>
  onnxModel({
    inputs: [{ name: 'wave', shape: [1, 300] }],
    outputs: [{ name: 'same', shape: [1, 300] }],
    nodes: [{ operator: 'Identity', inputs: ['wave'], outputs: ['same'] }],
  })

async function fileWith(onnx: Uint8Array): Promise<string> {
  const path = join(folder, 'model.onnx')
  await writeFile(path, onnx)
  return path
}

describe('a network of several inputs', () => {
  test('keeps the length in its file, and makes the sizes of all inputs but the first open', async () => {
    const onnx = two()
    expect([...openSizes(onnx)]).toEqual([['spectrum', ['any', 2, 300]]])
    expect(onnx).toHaveLength(two().length)
    const { InferenceSession } = await importNative()
    const session = await InferenceSession.create(onnx)
    const shapes = session.inputMetadata.map((input) => (input.isTensor ? input.shape : []))
    expect(shapes[0]).toEqual([1, 300])
    expect(shapes[1]?.filter((size) => typeof size === 'number')).toEqual([])
    await session.release()
  })

  test('reports the sizes in its file, and gives the same results as that', async () => {
    const network = await openSession(await fileWith(two()), { runtime: 'native' })
    const wave = Float32Array.from({ length: 300 }, (_, index) => index)
    const spectrum = Float32Array.from({ length: 600 }, (_, index) => 1000 * index)
    const feeds = { wave: { dims: [1, 300], data: wave }, spectrum: { dims: [1, 2, 300], data: spectrum } }
    const { fetches } = await network.run(feeds, { sum: { dims: [1, 2, 300], data: new Float32Array(600) } })
    expect(fetches.sum?.data[299]).toBe(299_299)
    expect(fetches.sum?.data[599]).toBe(599_299)
    await network.close()
  })
})

describe('a network of several inputs that states sizes within', () => {
  const rows = () =>
    onnxModel({
      inputs: [
        { name: 'wave', shape: [1, 300] },
        { name: 'spectrum', shape: [1, 2, 300] },
      ],
      outputs: [{ name: 'rows', shape: ['rows', 'columns'] }],
      nodes: [
        { operator: 'Add', inputs: ['wave', 'spectrum'], outputs: ['sum'] },
        { operator: 'Reshape', inputs: ['sum', 'shape'], outputs: ['twice'] },
        { operator: 'Reshape', inputs: ['twice', 'shape'], outputs: ['rows'] },
      ],
      constants: [{ name: 'shape', dims: [2], values: [4, 150], type: 'int64' }],
    })

  test('passes none of them to the runtime', async () => {
    const { InferenceSession } = await importNative()
    const known = async (onnx: Uint8Array) => {
      const session = await InferenceSession.create(onnx)
      const [output] = session.outputMetadata
      await session.release()
      return output?.isTensor && output.shape
    }
    expect(await known(rows())).toEqual([4, 150])
    expect(await known((await readWithOpenSizes(await fileWith(rows())))!.onnx)).toEqual(['rows', 'columns'])
  })

  test('gives the same results', async () => {
    const network = await openSession(await fileWith(rows()), { runtime: 'native' })
    const wave = Float32Array.from({ length: 300 }, (_, index) => index)
    const spectrum = Float32Array.from({ length: 600 }, (_, index) => 1000 * index)
    const feeds = { wave: { dims: [1, 300], data: wave }, spectrum: { dims: [1, 2, 300], data: spectrum } }
    const { fetches } = await network.run(feeds, { rows: { dims: [4, 150], data: new Float32Array(600) } })
    expect(fetches.rows?.data[299]).toBe(299_299)
    expect(fetches.rows?.data[599]).toBe(599_299)
    await network.close()
  })
})

test('a network with a single input is left to the runtime', async () => {
  expect(await readWithOpenSizes(await fileWith(one()))).toBeUndefined()
})

test('a file that is not a network is left to the runtime, which says so', async () => {
  expect(await readWithOpenSizes(await fileWith(new Uint8Array(50).fill(255)))).toBeUndefined()
})
