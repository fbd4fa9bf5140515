// The separation pipeline (WAV in, two WAVs out) against the bare network on the same segments, its memory on long
// audio, and its second run. The input is synthetic: speed depends neither on the music nor, here, on a decoder.
// Options: --short leaves out the hour-long file.
import { fork } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { childArguments } from '../build/core/engine/runner/child-arguments.js'
import { childEnvironment } from '../build/core/engine/runner/child-environment.js'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'
import { openSession, defaultThreads } from '../build/core/models/session/session.js'
import { resolveModel } from '../build/core/models/registry.js'
import { separate } from '../build/core/workflows/separation/separate.js'
import { machine, printRows } from './shared/benchmark.mjs'

const sampleRate = 44_100
const threads = defaultThreads()
const rounds = 3

if (process.argv[2] === 'separate-once') {
  const [input, folder] = process.argv.slice(3)
  const startedAt = performance.now()
  await separate(input, { outputs: outputsIn(folder), threads })
  process.send({ peakBytes: process.resourceUsage().maxRSS * 1024, seconds: (performance.now() - startedAt) / 1000 })
  process.disconnect()
  // The network's thread is idle now and does not keep the process alive.
} else {
  await main()
}

async function main() {
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
  try {
    await printMachine()
    await speed(folder)
    await memory(folder, process.argv.includes('--short') ? [60, 180] : [180, 3600])
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function printMachine() {
  const version = async (path) => JSON.parse(await readFile(path, 'utf8')).version
  const onnxruntime = createRequire(import.meta.url)
    .resolve('onnxruntime-node')
    .replace(/dist[/\\].*$/, 'package.json')
  const { manifest } = await resolveModel('embedded')
  printRows([
    ['machine', machine()],
    [
      'versions',
      `stemwork ${await version(new URL('../package.json', import.meta.url))}, Node ${process.version}, ` +
        `onnxruntime-node ${await version(onnxruntime)}`,
    ],
    ['network', `${manifest.name} ${manifest.version}, ${threads} thread(s)`],
  ])
}

/** Pipeline and network take turns, so that other load on the machine slows both. */
async function speed(folder) {
  const seconds = 180
  const input = join(folder, 'speed.wav')
  await writeNoise(input, seconds)
  const cold = await separate(input, { outputs: outputsIn(folder), threads })
  const { manifest, path } = await resolveModel('embedded')
  const session = await openSession(path, { threads })
  const samples = []
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now()
    const { timings } = await separate(input, { outputs: outputsIn(folder), threads })
    const pipelineMs = performance.now() - startedAt
    samples.push({ pipelineMs, bareMs: await bareNetwork(session, manifest, seconds), timings })
  }
  await session.close()
  const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1]
  const pipelineMs = middle(samples.map((sample) => sample.pipelineMs))
  const bareMs = middle(samples.map((sample) => sample.bareMs))
  const part = (name) => Math.round(middle(samples.map(({ timings }) => timings[name])))
  printRows([
    ['input', `${seconds} s of noise, 16-bit stereo WAV, 44.1 kHz; median of ${rounds} rounds`],
    ['pipeline', `${Math.round(pipelineMs)} ms = ${((seconds * 1000) / pipelineMs).toFixed(1)} x real time`],
    [
      'bare session.run, same segments',
      `${Math.round(bareMs)} ms = ${((seconds * 1000) / bareMs).toFixed(1)} x real time`,
    ],
    [
      'ratio, median of the rounds',
      `${middle(samples.map((sample) => sample.pipelineMs / sample.bareMs)).toFixed(2)} (aim: at most 1.50)`,
    ],
    [
      'parts of the pipeline',
      `decode ${part('decode')} ms, spectra ${part('dsp')} ms, write ${part('write')} ms; beside them network ` +
        `${part('network')} ms`,
    ],
    ['time to load, first and second run', `${Math.round(cold.timings.load)} ms and ${part('load')} ms`],
  ])
}

async function bareNetwork(session, manifest, seconds) {
  const { chunk, input, stft } = manifest
  const frameCount = 1 + Math.floor((seconds * sampleRate) / stft.hop)
  const [powers, masks] = [session.inputs[0], session.outputs[0]]
  let totalMs = 0
  for (let first = 0; first < frameCount; first += chunk.frames) {
    const count =
      Math.min(frameCount, first + chunk.frames + chunk.overlapFrames) - Math.max(0, first - chunk.overlapFrames)
    const rows = Math.ceil(count / input.framesMultipleOf) * input.framesMultipleOf
    const tensor = ({ shape: [, channels, , bands] }) => {
      const data = Float32Array.from({ length: channels * rows * bands }, () => Math.random())
      return { dims: [1, channels, rows, bands], data }
    }
    const { runMs } = await session.run({ [powers.name]: tensor(powers) }, { [masks.name]: tensor(masks) })
    totalMs += runMs
  }
  return totalMs
}

/** Peak resident memory of a fresh process that separates one file, started like those of jobs. */
async function memory(folder, lengths) {
  const peaks = []
  for (const seconds of lengths) {
    const input = join(folder, 'memory.wav')
    await writeNoise(input, seconds)
    const result = await new Promise((resolve, reject) => {
      const settings = { execArgv: [...childArguments], env: childEnvironment(process.env) }
      const child = fork(import.meta.filename, ['separate-once', input, folder], settings)
      child.once('message', resolve)
      child.once('error', reject)
      child.once('exit', (code) => reject(new Error(`the child exited with ${code}`)))
    })
    peaks.push(result.peakBytes)
    printRows([
      [
        `${seconds / 60} min in a process of its own`,
        `peak ${Math.round(result.peakBytes / 2 ** 20)} MiB, ${result.seconds.toFixed(1)} s = ` +
          `${(seconds / result.seconds).toFixed(1)} x real time`,
      ],
    ])
  }
  printRows([['peak memory, long / short', `${(peaks[1] / peaks[0]).toFixed(2)} (aim: at most 1.20)`]])
}

async function writeNoise(path, seconds) {
  const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '16' })
  const planes = [0, 1].map(() => Float32Array.from({ length: sampleRate }, () => Math.random() - 0.5))
  for (let second = 0; second < seconds; second++) await writer.write(planes)
  await writer.close()
}

function outputsIn(folder) {
  return { vocals: join(folder, 'vocals.wav'), accompaniments: join(folder, 'accompaniments.wav') }
}
