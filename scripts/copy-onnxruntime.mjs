// Copies what onnxruntime-web loads at run time to dist, beside what the build bundles of it.
import { copyFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

for (const name of ['ort-wasm-simd-threaded.mjs', 'ort-wasm-simd-threaded.wasm']) {
  const source = fileURLToPath(import.meta.resolve(`onnxruntime-web/${name}`))
  copyFileSync(source, fileURLToPath(new URL(`../dist/core/models/session/${name}`, import.meta.url)))
}
