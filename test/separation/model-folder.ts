import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Manifest } from '../../src/core/models/manifest.js'
import { onnxModel, type OnnxGraph } from './onnx-graph.js'

/**
 * A network of waves that gives fixed shares of the mixture.
 *
 * @param gains of each stem: one for both channels, or one for the left and one for the right channel
 */
export function shares(gains: readonly number[], { samples = 7000, channels = 1 } = {}): OnnxGraph {
  const stems = gains.length / channels
  return {
    inputs: [{ name: 'mix', shape: [1, 2, samples] }],
    outputs: [{ name: 'waves', shape: [1, stems, 2, samples] }],
    nodes: [{ operator: 'Mul', inputs: ['mix', 'gains'], outputs: ['waves'] }],
    constants: [{ name: 'gains', dims: [1, stems, channels, 1], values: gains }],
  }
}

/** Writes a model folder as users have it, which bears the name of the model. */
export async function writeModelFolder(path: string, manifest: Manifest, graph: OnnxGraph): Promise<string> {
  const file = onnxModel(graph)
  const sha256 = createHash('sha256').update(file).digest('hex')
  await mkdir(path)
  await writeFile(join(path, manifest.file), file)
  const facts = { ...manifest, name: basename(path), bytes: file.length, sha256 }
  await writeFile(join(path, 'model.json'), JSON.stringify(facts))
  return path
}
