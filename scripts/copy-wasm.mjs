// Copies files that are loaded at run time to dist, beside the bundles. WebAssembly goes to the folder of the browser
// scripts, where bundlers expect it; Node.js reads the large onnxruntime module from that folder, too.
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const copies = {
  'core/models/session/ort-wasm-simd-threaded.mjs': import.meta.resolve('onnxruntime-web/ort-wasm-simd-threaded.mjs'),
  'browser/ort-wasm-simd-threaded.wasm': import.meta.resolve('onnxruntime-web/ort-wasm-simd-threaded.wasm'),
  'browser/pffft.wasm': new URL('pffft.wasm', import.meta.resolve('@echogarden/pffft-wasm/simd')).href,
}
for (const [name, source] of Object.entries(copies)) {
  const target = fileURLToPath(new URL(`../dist/${name}`, import.meta.url))
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(fileURLToPath(source), target)
}
