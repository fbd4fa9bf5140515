// Cost of low latency: the quality of vocals from streams compared with the same songs offline, and CPU time as a
// share of one core. Options: --songs=<folder as for "stemwork evaluate"> --seconds=20 (of each song, where its vocals
// are loudest; "all") --latencies=250,500,1000,2000,4000 --model=embedded --runtime=auto
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openAudio } from '../build/core/media/decode/open-audio.js'
import { resolveModel } from '../build/core/models/registry.js'
import { openSession } from '../build/core/models/session/session.js'
import { createArchitecture } from '../build/core/workflows/separation/architectures/create-architecture.js'
import { stemComparison } from '../build/core/workflows/separation/evaluation/scores.js'
import { findSongs } from '../build/core/workflows/separation/evaluation/song-folders.js'
import { runPipeline } from '../build/core/workflows/separation/pipeline/pipeline.js'
import { separateStream } from '../build/live.js'

const { values } = parseArgs({
  options: {
    songs: { type: 'string', default: join(import.meta.dirname, '../../shared/data/everything-is-free') },
    seconds: { type: 'string', default: '20' },
    latencies: { type: 'string', default: '250,500,1000,2000,4000' },
    model: { type: 'string', default: 'embedded' },
    runtime: { type: 'string', default: 'auto' },
  },
})
const aims = new Map([
  [500, 2],
  [1000, 1],
])
const mostBusy = 0.6
/** Length of the song before the scored part: more than the context of any model. */
const leadSeconds = 12

const { manifest, paths } = await resolveModel(values.model)
const { sampleRate } = manifest.audio
const songs = []
for (const song of await findSongs(values.songs)) songs.push(await excerpt(song))
const network = await openSession(paths[0], { threads: 1, runtime: values.runtime })
console.log(
  `${cpus()[0]?.model.trim()}, load ${loadavg()[0].toFixed(1)} at the start; Node ${process.version}; ` +
    `${manifest.name} ${manifest.version}, ${network.runtime}; ${songs.length} songs, ${values.seconds} s of each\n`,
)
const offline = []
for (const song of songs) offline.push(await offlineScore(song))
await network.close()
console.log('latency  uSDR of the vocals  below offline  aim       share of a core  aim')
console.log(['offline'.padEnd(9), `${mean(offline).toFixed(2)} dB`].join(''))
for (const latencyMs of values.latencies.split(',').map(Number)) {
  const scores = []
  let audioSeconds = 0
  const before = process.cpuUsage()
  for (const song of songs) {
    scores.push(await liveScore(song, latencyMs))
    audioSeconds += song.mixture[0].length / sampleRate
  }
  const { user, system } = process.cpuUsage(before)
  const share = (user + system) / 1e6 / audioSeconds
  const lost = mean(offline) - mean(scores)
  const aim = aims.get(latencyMs)
  console.log(
    [
      `${latencyMs} ms`.padEnd(9),
      `${mean(scores).toFixed(2)} dB`.padEnd(20),
      `${lost.toFixed(2)} dB`.padEnd(15),
      (aim === undefined ? '-' : `${aim} dB ${lost <= aim ? 'pass' : 'MISS'}`).padEnd(10),
      `${(100 * share).toFixed(0)} %`.padEnd(17),
      `${100 * mostBusy} % ${share <= mostBusy ? 'pass' : 'MISS'}`,
    ].join(''),
  )
}

/** The mixture and the vocals of the scored part with the lead before it. */
async function excerpt({ name, vocals, accompaniments }) {
  const [voice, ...others] = await Promise.all([vocals, ...accompaniments].map(samplesOf))
  const length = Math.min(...[voice, ...others].map(([left]) => left.length))
  const wanted = values.seconds === 'all' ? length : Math.min(length, Number(values.seconds) * sampleRate)
  const from = loudest(voice[0], wanted, length)
  const start = Math.max(0, from - leadSeconds * sampleRate)
  const part = (plane) => plane.slice(start, from + wanted)
  const mixture = [0, 1].map((channel) => part(voice[channel]))
  for (const other of others)
    mixture.forEach((plane, channel) => part(other[channel]).forEach((value, i) => (plane[i] += value)))
  return { name, mixture, vocals: voice.map(part), lead: from - start }
}

async function samplesOf(path) {
  const { blocks } = await openAudio(path)
  const parts = [[], []]
  for await (const { channels } of blocks)
    parts.forEach((part, side) => part.push((channels[side] ?? channels[0]).slice()))
  return parts.map((part) => {
    const whole = new Float32Array(part.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const samples of part) {
      whole.set(samples, at)
      at += samples.length
    }
    return whole
  })
}

function loudest(plane, wanted, length) {
  let best = { from: 0, energy: -1 }
  for (let from = 0; from + wanted <= length; from += 5 * sampleRate) {
    let energy = 0
    for (let i = from; i < from + wanted; i += 16) energy += plane[i] ** 2
    if (energy > best.energy) best = { from, energy }
  }
  return best.from
}

async function offlineScore(song) {
  const architecture = await createArchitecture(manifest, [network], { stems: ['vocals'] })
  const stream = {
    sampleRate,
    channelCount: 2,
    sampleCount: song.mixture[0].length,
    format: 'pcm',
    blocks: blocksOf(song),
  }
  const score = scorer(song)
  await runPipeline([{ architecture, networks: [network], stream }], {
    outputs: ['vocals'],
    sink: async ({ vocals }) => score.add(vocals),
  })
  architecture.close()
  return score.uSdr
}

async function liveScore(song, latencyMs) {
  const score = scorer(song)
  const planes = (async function* () {
    for await (const { channels } of blocksOf(song)) yield channels
  })()
  const { model, runtime } = values
  for await (const { stems } of separateStream(planes, { sampleRate, model, runtime, latencyMs, whenLate: 'wait' }))
    score.add(stems.vocals)
  return score.uSdr
}

async function* blocksOf({ mixture }) {
  for (let from = 0; from < mixture[0].length; from += 4096)
    yield { channels: mixture.map((plane) => plane.slice(from, from + 4096)) }
}

/** Returns a function that scores estimates from the end of the lead. */
function scorer({ vocals, lead }) {
  const comparison = stemComparison(sampleRate)
  let at = 0
  return {
    add(planes) {
      const skipped = Math.min(planes[0].length, Math.max(0, lead - at))
      const end = at + planes[0].length
      if (at + skipped < end)
        comparison.add(
          vocals.map((plane) => plane.subarray(at + skipped, end)),
          planes.map((plane) => plane.subarray(skipped)),
        )
      at = end
    },
    get uSdr() {
      return comparison.scores().uSdr
    },
  }
}

function mean(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length
}
