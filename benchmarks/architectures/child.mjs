// The tasks of benchmarks/architectures.mjs, each in its own process, so that peak memory is that of one task.
import { fork } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { childArguments } from '../../build/core/engine/runner/child-arguments.js'
import { childEnvironment } from '../../build/core/engine/runner/child-environment.js'
import { createArchitecture } from '../../build/core/workflows/separation/architectures/create-architecture.js'
import { resolveModel } from '../../build/core/models/registry.js'
import { openSession } from '../../build/core/models/session/session.js'
import { separate } from '../../build/core/workflows/separation/separate.js'

const sampleRate = 44_100

/** Runs one of the tasks below in a new process and returns its answer. */
export function inChild(task, settings) {
  return new Promise((resolve, reject) => {
    const child = fork(import.meta.filename, [task, JSON.stringify(settings)], {
      execArgv: [...childArguments],
      env: childEnvironment(process.env),
    })
    child.once('message', resolve)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the child exited with ${code}`)))
  })
}

const tasks = {
  separate: run,

  /** The whole pipeline, then the bare network, in each round. Memory is measured in the first pass only. */
  async 'take-turns'({ rounds: count, seconds, ...settings }) {
    const { peakBytes } = await run(settings)
    const network = await BareNetwork.open(settings)
    const rounds = []
    for (let round = 0; round < count; round++) {
      const { ms: pipelineMs, cpuMs: pipelineCpuMs, timings } = await run(settings)
      const { ms: bareMs, cpuMs: bareCpuMs } = await network.run(seconds)
      rounds.push({ pipelineMs, pipelineCpuMs, bareMs, bareCpuMs, dspMs: timings.dsp })
    }
    await network.close()
    return { peakBytes, rounds }
  },
}

/** One separation. `ms` excludes the time to load, `cpuMs` includes it. */
async function run({ input, model, folder, threads, format, runtime }) {
  const outputs = { vocals: join(folder, 'vocals.wav'), accompaniments: join(folder, 'accompaniments.wav') }
  // Replacing a file may make the file system flush it at once. A job never replaces files.
  for (const path of Object.values(outputs)) await rm(path, { force: true })
  const startedAt = performance.now()
  const cpuBefore = process.cpuUsage()
  const { timings, seconds } = await separate(input, { outputs, model, threads, format, runtime })
  const ms = performance.now() - startedAt - timings.load
  return { ms, seconds, timings, peakBytes: process.resourceUsage().maxRSS * 1024, cpuMs: cpuMsSince(cpuBefore) }
}

function cpuMsSince(before) {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Runs only the networks of a model, one after another, on the segments of a track. */
class BareNetwork {
  #manifest
  #sessions

  static async open({ model, threads }) {
    const network = new BareNetwork()
    const { manifest, paths } = await resolveModel(model)
    network.#manifest = manifest
    network.#sessions = []
    for (const path of paths) network.#sessions.push(await openSession(path, { threads }))
    return network
  }

  /** Time spent in the networks, by wall clock and CPU. */
  async run(seconds) {
    const architecture = await createArchitecture(this.#manifest, this.#sessions, { stems: ['vocals'] })
    const { step, before, length, given = 0 } = architecture.geometry
    const track = seconds * sampleRate
    const statistics = { mean: 0, standardDeviation: 0.3 }
    const total = { ms: 0, cpuMs: 0 }
    for (let index = 0; index === 0 || index * step + given < track; index++) {
      const start = Math.max(0, index * step - before)
      const end = Math.min(index * step - before + length, track)
      const planes = [0, 1].map(() => Float32Array.from({ length: end - start }, () => Math.random() - 0.5))
      const segment = { index, start, planes, trackSamples: end === track ? track : undefined }
      const runs = architecture.prepare(segment, statistics)
      const cpuBefore = process.cpuUsage()
      const startedAt = performance.now()
      for (const { network, feeds, fetches } of runs) await this.#sessions[network].run(feeds, fetches)
      total.ms += performance.now() - startedAt
      total.cpuMs += cpuMsSince(cpuBefore)
      architecture.collect(segment, runs, statistics)
    }
    architecture.close()
    return total
  }

  async close() {
    for (const session of this.#sessions) await session.close()
  }
}

if (process.argv[1] === import.meta.filename) {
  const [task, settings] = process.argv.slice(2)
  process.send(await tasks[task](JSON.parse(settings)))
  process.disconnect()
  // The network's thread is idle now and does not keep the process alive.
}
