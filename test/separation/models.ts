import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { embeddedModelFolder } from '../../src/core/models/load-model.js'

/**
 * A model folder of the embedded architecture around another network, with the embedded model's manifest where it
 * still applies; each bin is a band.
 */
export async function writeModel(
  folder: string,
  network: Uint8Array,
  changes: Record<string, unknown> = {},
): Promise<string> {
  await mkdir(folder, { recursive: true })
  const manifest: Record<string, unknown> = JSON.parse(await readFile(join(embeddedModelFolder, 'model.json'), 'utf8'))
  const sha256 = createHash('sha256').update(network).digest('hex')
  await writeFile(join(folder, 'model.onnx'), network)
  const bands = [[0, 2049, 1]]
  await writeFile(
    join(folder, 'model.json'),
    JSON.stringify({ ...manifest, name: 'test', bands, bytes: network.length, sha256, ...changes }),
  )
  return folder
}
