// The bundled model on both runtimes, the native library and WebAssembly: speed, CPU time, peak memory, and how much
// their results differ. Each separation is its own process; the runtimes take turns. Options:
//   --seconds N  length of the input, the demo song repeated (default 120): noise has no vocals to compare
//   --song FILE  a file to separate instead
//   --rounds N   of each (default 3); the median counts
//   --threads N  of the network (default 1)
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { inChild } from './architectures/child.mjs'
import { writeSong } from './architectures/files.mjs'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '120' },
    song: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: '1' },
  },
})
const aims = { speed: 3.5, memory: 1.3, decibels: 70 }
const [rounds, threads] = [Number(values.rounds), Number(values.threads)]
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
try {
  const input = values.song ?? (await writeSong(folder, Number(values.seconds)))
  const load = loadavg()[0].toFixed(1)
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${load} at the start; Node ` +
      `${process.version}; ${threads} thread(s), median of ${rounds} rounds\n`,
  )
  console.log('          x real time   x real time by processor time   load, ms   peak')
  const found = { native: [], wasm: [] }
  for (let round = 0; round < rounds; round++) {
    for (const [runtime, runs] of Object.entries(found)) {
      runs.push(await inChild('separate', { input, folder, threads, runtime, format: '32f' }))
      await copyFile(join(folder, 'vocals.wav'), join(folder, `${runtime}.wav`))
    }
  }
  const native = summary('native', found.native)
  const wasm = summary('wasm', found.wasm)
  console.log(
    `\nWebAssembly: ${wasm.speed.toFixed(1)} x real time by processor time (aim: at least ${aims.speed}), ` +
      `${(native.speed / wasm.speed).toFixed(2)} times the processor time and ` +
      `${(wasm.peakBytes / native.peakBytes).toFixed(2)} times the memory (aim: at most ${aims.memory}) of the ` +
      `native library; the vocals are equal to ${(await equality()).toFixed(0)} dB (aim: at least ${aims.decibels})`,
  )
} finally {
  await rm(folder, { recursive: true })
}

/** Prints a line. CPU time counts all threads, on all CPUs, from the start of the work. */
function summary(name, runs) {
  const [{ seconds }] = runs
  const middle = (pick) => runs.map(pick).sort((a, b) => a - b)[runs.length >> 1]
  const elapsed = seconds / (middle(({ ms }) => ms) / 1000)
  const speed = seconds / (middle(({ cpuMs }) => cpuMs) / 1000)
  const loadMs = middle(({ timings }) => timings.load)
  const peakBytes = middle((run) => run.peakBytes)
  const columns = [elapsed.toFixed(1).padStart(12), speed.toFixed(1).padStart(32), loadMs.toFixed(0).padStart(11)]
  console.log(`${name.padEnd(9)}${columns.join('')}${`${(peakBytes / 1e6).toFixed(0)} MB`.padStart(9)}`)
  return { speed, peakBytes }
}

/** Power of the native library's vocals relative to the difference, in dB. */
async function equality() {
  const [native, wasm] = await Promise.all(['native', 'wasm'].map((name) => readFile(join(folder, `${name}.wav`))))
  let [power, difference] = [0, 0]
  // Compares from the end, where the samples are; the header is shorter than 4096 bytes.
  for (let at = native.length - 4; at >= 4096; at -= 4) {
    const value = native.readFloatLE(at)
    power += value ** 2
    difference += (wasm.readFloatLE(at) - value) ** 2
  }
  return 10 * Math.log10(power / difference)
}
