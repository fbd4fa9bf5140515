import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { Network } from '../../src/core/models/session/network.js'
import { openSession } from '../../src/core/models/session/session.js'
import { onnxModel, type OnnxGraph } from './onnx-graph.js'

/** Loads networks that a test file writes; they are closed after its tests. */
export function testNetworks(): (graph: OnnxGraph) => Promise<Network> {
  const open: Network[] = []
  let folder: string | undefined
  afterAll(async () => {
    for (const network of open) await network.close()
    if (folder) await rm(folder, { recursive: true })
  })
  return async (graph) => {
    folder ??= await mkdtemp(join(tmpdir(), 'stemwork-'))
    const path = join(folder, `${crypto.randomUUID()}.onnx`)
    await writeFile(path, onnxModel(graph))
    const network = await openSession(path, { threads: 1 })
    open.push(network)
    return network
  }
}
