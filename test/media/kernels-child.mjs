// Runs the code that uses the kernels, and prints the results (see kernels.test.ts). With `--plain`, the plain kernels
// run instead; with `--errors`, it prints how each part fails.
import { createHash } from 'node:crypto'

const build = new URL('../../build/', import.meta.url)
let [compiled, instances] = [0, 0]
if (globalThis.WebAssembly) {
  const { Module, Instance } = WebAssembly
  const twins = process.argv.includes('--plain') ? await plainTwins() : new Map()
  const plainOf = new WeakMap()
  const compile = (target, [bytes]) => {
    compiled++
    const module = new target(bytes)
    plainOf.set(module, twins.get(digest(bytes)))
    return module
  }
  const instantiate = (target, [module, imports]) => {
    instances++
    const plain = plainOf.get(module)
    return plain ? { exports: plain(new Float32Array(imports.env.memory.buffer)) } : new target(module, imports)
  }
  WebAssembly.Module = new Proxy(Module, { construct: compile })
  WebAssembly.Instance = new Proxy(Instance, { construct: instantiate })
}

// Modules that it loads use `fetch`, and in Node.js 22 `fetch` ends a process without WebAssembly.
if (globalThis.WebAssembly) await import(new URL('index.js', build).href)
const dsp = (name) => import(new URL(`core/media/dsp/${name}.js`, build).href)
const { resample } = await dsp('resample')
const { VocalsRefinement } = await dsp('wiener')
const { Stft } = await dsp('stft')
const { PcmEncoder } = await import(new URL('core/media/encode/pcm-encoder.js', build).href)
const { FlacBlocks } = await import(new URL('core/media/encode/flac/flac-blocks.js', build).href)
const { Mp3Frames } = await import(new URL('core/media/encode/mp3/mp3-frames.js', build).href)
const compiledByImport = compiled

const { openCodec } = await import(new URL('core/media/decode/codec-stream.js', build).href)
const parts = {
  resampled: async () => digest(await resampled(noise(20_000), 48_000, 44_100)),
  packed: () => digest(new PcmEncoder('16').encode([noise(5001, 2), noise(5001, 3)])),
  refined: () => digest(...refined()),
  flac: () => digest(flacFrames()),
  mp3: () => digest(mp3Frames()),
  transformed,
}
if (process.argv.includes('--errors')) await printErrors()
else await printResults()

async function printResults() {
  const results = {}
  for (let round = 0; round < 2; round++) {
    for (const [name, run] of Object.entries(parts)) results[name] = await run()
  }
  console.log(JSON.stringify({ compiledByImport, compiled, instances, ...results }))
}

async function printErrors() {
  const decoded = () => openCodec('mp3', (async function* () {})(), 'mp3')
  const errors = {}
  for (const [name, run] of Object.entries({ ...parts, decoded })) {
    errors[name] = 'none'
    try {
      await run()
    } catch ({ name: type, code, message }) {
      errors[name] = `${type} ${code}: ${message}`
    }
  }
  console.log(JSON.stringify(errors))
}

/** The plain kernels, by the digest of the compiled kernel. */
async function plainTwins() {
  const { plainKernels } = await import('./plain-kernels/load.mjs')
  const { kernelBytes } = await import(new URL('core/media/dsp/kernels/kernel-bytes.js', build).href)
  return new Map(Object.entries(plainKernels).map(([name, plain]) => [digest(kernelBytes(name)), plain]))
}

async function resampled(plane, from, to) {
  const blocks = (async function* () {
    yield { channels: [plane] }
  })()
  const output = []
  for await (const { channels } of resample({ sampleRate: from, channelCount: 1, blocks }, to).blocks)
    output.push(...channels[0])
  return Float32Array.from(output)
}

function flacFrames() {
  const blocks = new FlacBlocks({ sampleRate: 44_100, channels: 2, bits: 16 })
  const frames = []
  for (const [seed, scale] of [
    [8, 9],
    [9, 12_000],
  ]) {
    const count = seed === 8 ? 4096 : 1001
    const planes = [0, 1].map((channel) => noise(count, seed + channel))
    const integers = Array.from(
      { length: 2 * count },
      (_, i) => scale * (planes[i % 2][i >> 1] + Math.sin((i >> 1) / 20)),
    )
    blocks.put(Int16Array.from(integers, Math.round), 0)
    frames.push(Buffer.from(blocks.encode(count)))
  }
  return Buffer.concat(frames)
}

function mp3Frames() {
  const encoder = new Mp3Frames({ sampleRate: 44_100, channels: 2 })
  const planes = [noise(4 * 1152, 10), noise(4 * 1152, 11)].map((plane) =>
    plane.map((value, i) => (i > 2000 && i < 2400 ? value : value / 100)),
  )
  return Buffer.concat(
    [0, 1, 2, 3].map((frame) =>
      Buffer.from(encoder.encode(planes.map((plane) => plane.subarray(1152 * frame, 1152 * (frame + 1))))),
    ),
  )
}

function refined() {
  const [bins, frameCount] = [33, 21]
  const refinement = new VocalsRefinement({ bins, frameCount, windowFrames: 16 })
  const mixture = { re: noise(2 * bins * frameCount, 4), im: noise(2 * bins * frameCount, 5) }
  const magnitude = new Float32Array(2 * bins * frameCount)
  const peaks = refinement.magnitudes(mixture, magnitude)
  const vocals = magnitude.map((value, i) => (value * (i % 7)) / 7)
  refinement.refine(mixture, vocals, peaks, [0, frameCount])
  return [mixture.re, mixture.im, magnitude, peaks]
}

async function transformed() {
  const stft = await Stft.create({ size: 2048, hop: 441 })
  const frames = 37
  const signal = noise(stft.samplesOf(frames))
  const [re, im] = [0, 1].map(() => new Float32Array(frames * stft.bins))
  const layout = { frameStride: stft.bins, binStride: 1 }
  stft.forward(signal, frames, re, im, layout)
  const back = new Float32Array(signal.length)
  stft.inverse(re, im, frames, layout, back)
  stft.close()
  const errors = back.map((value, i) => Math.abs(value - signal[i])).subarray(441, -441)
  return { roundTripError: Math.max(...errors), spectrum: digest(re, im) }
}

function noise(length, seed = 1) {
  let state = seed
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state / 2 ** 32 - 0.5) * 2.2
  })
}

function digest(...arrays) {
  const hash = createHash('sha256')
  for (const array of arrays) hash.update(new Uint8Array(array.buffer, array.byteOffset, array.byteLength))
  return hash.digest('hex')
}
