import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'
import type { Network } from '../../src/core/models/session/network.js'
import { openSession } from '../../src/core/models/session/session.js'
import { onnxModel, type OnnxGraph } from './onnx-graph.js'
import { decibelsAlike } from './tracks.js'

/**
 * Returns a function that loads networks, each into both runtimes, which must agree in every run. Networks are closed
 * after the test file.
 */
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
    const native = await openSession(path, { threads: 1, runtime: 'native' })
    const wasm = await openSession(path, { threads: 1, runtime: 'wasm' })
    open.push(native, wasm)
    return inAgreement(native, wasm)
  }
}

function inAgreement(native: Network, wasm: Network): Network {
  expect([wasm.inputs, wasm.outputs]).toEqual([native.inputs, native.outputs])
  return {
    ...native,
    async run(feeds, fetches) {
      const empty = Object.entries(fetches).map(
        ([name, { data, dims }]) => [name, { dims, data: new Float32Array(data.length) }] as const,
      )
      const { fetches: byWasm } = await wasm.run(feeds, Object.fromEntries(empty))
      const result = await native.run(feeds, fetches)
      for (const [name, { data }] of Object.entries(result.fetches))
        expect(decibelsAlike(byWasm[name]!.data, data)).toBeGreaterThan(100)
      return result
    },
  }
}
