import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onnxModel } from '../separation/onnx-graph.js'
import { manifestFor, sha256, writeManifest } from './model-files.js'

const samples = 7000

export interface SharesModel {
  /** Path of the manifest. */
  manifest: string
  hash: string
}

/** A model whose stems are fixed shares of the mixture, with its manifest. */
export async function writeSharesModel(
  folder: string,
  name: string,
  gains: Record<string, number>,
): Promise<SharesModel> {
  const stems = Object.keys(gains)
  const network = onnxModel({
    inputs: [{ name: 'mix', shape: [1, 2, samples] }],
    outputs: [{ name: 'waves', shape: [1, stems.length, 2, samples] }],
    nodes: [{ operator: 'Mul', inputs: ['mix', 'gains'], outputs: ['waves'] }],
    constants: [{ name: 'gains', dims: [1, stems.length, 1, 1], values: Object.values(gains) }],
  })
  const manifest = manifestFor(network, {
    name,
    architecture: 'htdemucs',
    file: `${name}.onnx`,
    stems,
    addresses: undefined,
  })
  await writeFile(join(folder, `${name}.onnx`), network)
  return { manifest: await writeManifest(join(folder, `${name}.json`), manifest), hash: sha256(network) }
}
