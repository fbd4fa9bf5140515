// Copies what is loaded at run time to dist, beside what the build bundles. WebAssembly lies in the folder of the
// scripts for browsers, whose bundlers look for it there; Node.js reads onnxruntime's from there, too, for it is large.
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
