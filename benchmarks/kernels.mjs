// Each kernel in WebAssembly against its JavaScript equivalent: one thread, CPU time, alternating.
import { cpus, loadavg } from 'node:os'
import { createDotProduct } from '../build/core/media/dsp/kernels/dot-product.js'
import { createFrameKernels } from '../build/core/media/dsp/kernels/frame-kernels.js'
import { createStereoPacking } from '../build/core/media/dsp/kernels/pack-stereo.js'
import { createWienerKernels } from '../build/core/media/dsp/kernels/wiener-kernels.js'
import { plainKernels } from '../test/media/plain-kernels/load.mjs'
import { middle } from './shared/benchmark.mjs'

const rounds = 9
const floats = 200_000
// A row of 4096 points, a filter of 96 coefficients, and a tile of 8 frames with 2052 bins, its rows 2192 floats apart.
const [bins, pitch] = [2052, 2192]
const tile = [0, 8 * pitch, 32 * pitch, 8 * pitch]
const fields = 48 * pitch
const cases = [
  [
    'multiply',
    createFrameKernels,
    plainKernels['frame-kernels'],
    1000,
    ({ multiply }) => multiply(0, 4112, 8224, 4096),
  ],
  [
    'multiplyAdd',
    createFrameKernels,
    plainKernels['frame-kernels'],
    1000,
    ({ multiplyAdd }) => multiplyAdd(0, 4112, 8224, 4096),
  ],
  ['split', createFrameKernels, plainKernels['frame-kernels'], 1000, ({ split }) => split(0, 4112, 8224, 2048)],
  ['merge', createFrameKernels, plainKernels['frame-kernels'], 1000, ({ merge }) => merge(0, 4112, 8224, 2048)],
  ['dotProduct', createDotProduct, plainKernels['dot-product'], 10_000, ({ dotProduct }) => dotProduct(3, 4112, 96)],
  ['pack', createStereoPacking, plainKernels['pack-stereo'], 1000, ({ pack }) => pack(0, 2064, 4128, 2048)],
  [
    'magnitudes',
    createWienerKernels,
    plainKernels['wiener-kernels'],
    1000,
    ({ magnitudes }) => magnitudes(0, 4112, 8224, bins),
  ],
  [
    'addToSums',
    createWienerKernels,
    plainKernels['wiener-kernels'],
    10,
    ({ addToSums }) => addToSums(...tile, fields, pitch, bins, 8, 1),
  ],
  [
    'filter',
    createWienerKernels,
    plainKernels['wiener-kernels'],
    10,
    ({ filter }) => filter(...tile, fields, pitch, bins, 8),
  ],
]

console.log(`${cpus()[0]?.model.trim()}, load ${loadavg()[0].toFixed(1)} at the start; Node ${process.version}\n`)
console.log(`kernel        plain µs   WebAssembly µs   times as fast (median of ${rounds} rounds)`)
for (const [name, create, plain, repeats, run] of cases) {
  const kernel = create(floats)
  const noise = Float32Array.from({ length: floats }, () => Math.random() - 0.5)
  const memory = noise.slice()
  const sides = { plain: plain(memory), simd: kernel }
  const times = { plain: [], simd: [] }
  for (let round = -2; round < rounds; round++) {
    for (const side of ['plain', 'simd']) {
      // The Wiener step overwrites its input: without this, it would soon process zeros or infinities.
      memory.set(noise)
      kernel.memory.set(noise)
      const before = process.cpuUsage()
      for (let i = 0; i < repeats; i++) run(sides[side])
      const { user, system } = process.cpuUsage(before)
      if (round >= 0) times[side].push((user + system) / repeats)
    }
  }
  const [slow, fast] = [middle(times.plain), middle(times.simd)]
  console.log(
    [
      name.padEnd(12),
      slow.toFixed(2).padStart(10),
      fast.toFixed(2).padStart(17),
      (slow / fast).toFixed(1).padStart(16),
    ].join(''),
  )
}
