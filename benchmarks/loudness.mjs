// Speed of the loudness workflow's measurement compared with ffmpeg's ebur128, alternating, on ten minutes of synthetic
// music or on a file: node benchmarks/loudness.mjs [song] [--rounds=5]
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { measureLoudness } from '../build/core/media/loudness/measure-loudness.js'
import { openAudio } from '../build/core/media/decode/open-audio.js'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'

const sampleRate = 44_100
const seconds = 600
const aim = 100

const options = process.argv.slice(2)
const rounds = Number(options.find((option) => option.startsWith('--rounds='))?.slice(9) ?? 5)
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
try {
  const song = options.find((option) => !option.startsWith('--')) ?? (await syntheticSong(join(folder, 'song.wav')))
  console.log(`${cpus()[0]?.model.trim()}, load ${loadavg()[0].toFixed(1)} at the start; Node ${process.version}`)
  const own = []
  const other = []
  let measured
  for (let round = 0; round < rounds; round++) {
    const startedAt = process.cpuUsage()
    const from = performance.now()
    measured = await measureLoudness(await openAudio(song))
    const { user, system } = process.cpuUsage(startedAt)
    own.push({ wall: (performance.now() - from) / 1000, cpu: (user + system) / 1e6 })
    other.push(ffmpeg(song))
  }
  const [best, rival] = [middle(own), middle(other.filter(Boolean))]
  console.log(
    `stemwork  ${row(best, measured.seconds)}  ${measured.integrated.toFixed(2)} LUFS, ` +
      `${measured.truePeak.toFixed(2)} dBTP`,
  )
  if (rival) console.log(`ffmpeg    ${row(rival, measured.seconds)}  ${rival.figures}`)
  else console.log('ffmpeg is not installed')
  if (rival) console.log(`ratio of processor time: ${(best.cpu / rival.cpu).toFixed(2)}`)
  console.log(`resident memory: ${(process.memoryUsage.rss() / 2 ** 20).toFixed(0)} MiB`)
  const isMet = measured.seconds / best.cpu >= aim
  console.log(`at least ${aim} x real time: ${isMet ? 'met' : 'missed'}`)
  process.exitCode = isMet ? 0 : 1
} finally {
  await rm(folder, { recursive: true })
}

function ffmpeg(song) {
  const startedAt = performance.now()
  const args = ['-nostats', '-benchmark', '-i', song, '-af', 'ebur128=peak=true:framelog=verbose', '-f', 'null', '-']
  const { stderr, error } = spawnSync('ffmpeg', args, { encoding: 'utf8' })
  if (error) return undefined
  const [, user, system] = /utime=([\d.]+)s stime=([\d.]+)s/.exec(stderr)
  const value = (name) => new RegExp(`${name}\\s+(-?[\\d.]+)`).exec(stderr.slice(stderr.lastIndexOf('Summary:')))?.[1]
  return {
    wall: (performance.now() - startedAt) / 1000,
    cpu: Number(user) + Number(system),
    figures: `${value('I:')} LUFS, ${value('True peak:\\s+Peak:')} dBTP`,
  }
}

function row({ wall, cpu }, length) {
  return `${cpu.toFixed(2)} s of processor (${(length / cpu).toFixed(0)} x real time), ${wall.toFixed(2)} s`
}

function middle(runs) {
  return runs.toSorted((one, two) => one.cpu - two.cpu)[Math.floor(runs.length / 2)]
}

async function syntheticSong(path) {
  const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '16' })
  for (let second = 0; second < seconds; second++) {
    const planes = [0, 1].map((channel) =>
      Float32Array.from({ length: sampleRate }, (_, i) => {
        const t = second + i / sampleRate
        const beat = Math.exp(-8 * (t % 0.5))
        const tones = Math.sin(2 * Math.PI * 110 * t) + Math.sin(2 * Math.PI * 440 * t + channel) / 2
        return (0.2 + 0.1 * Math.sin(t / 9)) * tones + 0.5 * beat * (Math.random() - 0.5)
      }),
    )
    await writer.write(planes)
  }
  await writer.close()
  return path
}
