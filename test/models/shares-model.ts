import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shares } from '../separation/model-folder.js'
import { onnxModel } from '../separation/onnx-graph.js'
import { manifestFor, sha256, writeManifest } from './model-files.js'

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
  const network = onnxModel(shares(Object.values(gains)))
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
