// The cost of FLAC and MP3 files compared with 16-bit WAV files: whole separations in separate processes, alternating,
// and the FLAC encoder alone against the reference encoder. Input: synthetic music, or a file: node
// benchmarks/encode.mjs [song] [--rounds=3]
import { fork, spawnSync } from 'node:child_process'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEncoder } from '../build/core/media/encode/encoder.js'
import { openAudio } from '../build/core/media/decode/open-audio.js'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'
import { formatTable } from '../build/core/media/encode/output-format.js'
import { separate } from '../build/core/workflows/separation/separate.js'
import { machine, middle } from './shared/benchmark.mjs'

const sampleRate = 44_100
const seconds = 240
const formats = ['16', 'flac', 'flac24', 'mp3']

if (process.argv[2] === 'separate-once') {
  const [input, folder, format] = process.argv.slice(3)
  const { extension } = formatTable[format]
  const outputs = Object.fromEntries(
    ['vocals', 'accompaniments'].map((stem) => [stem, join(folder, `${stem}-${format}.${extension}`)]),
  )
  const startedAt = performance.now()
  await separate(input, { outputs, format })
  const wallSeconds = (performance.now() - startedAt) / 1000
  const { user, system } = process.cpuUsage()
  const { maxRSS } = process.resourceUsage()
  process.send({ wallSeconds, cpuSeconds: (user + system) / 1e6, peakBytes: maxRSS * 1024, outputs })
  process.disconnect()
} else {
  await main()
}

async function main() {
  const options = process.argv.slice(2)
  const rounds = Number(options.find((option) => option.startsWith('--rounds='))?.slice(9) ?? 3)
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
  try {
    const input = options.find((option) => !option.startsWith('--')) ?? (await syntheticSong(join(folder, 'song.wav')))
    console.log(`${machine()}; Node ${process.version}`)
    await separations(input, folder, rounds)
    await flacAlone(join(folder, 'accompaniments-16.wav'), folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Formats take turns, so that other load on the machine slows all of them alike. */
async function separations(input, folder, rounds) {
  const runs = Object.fromEntries(formats.map((format) => [format, []]))
  for (let round = 0; round < rounds; round++)
    for (const format of formats) runs[format].push(await separateOnce(input, folder, format))
  console.log(`\nwhole separation      CPU s   / WAV   wall s   / WAV   peak MiB      MB (median of ${rounds} rounds)`)
  for (const format of formats) {
    const bytes = await Promise.all(Object.values(runs[format][0].outputs).map(async (path) => (await stat(path)).size))
    const row = [
      ratio(runs, format, 'cpuSeconds'),
      ratio(runs, format, 'wallSeconds'),
      (middle(runs[format].map(({ peakBytes }) => peakBytes)) / 2 ** 20).toFixed(0).padStart(11),
      (bytes.reduce((sum, each) => sum + each, 0) / 1e6).toFixed(1).padStart(8),
    ]
    console.log(format.padEnd(18) + row.join(''))
  }
  console.log('aims: flac at most 1.30 and mp3 2.00 times the processor time of WAV, both 1.15 times its wall time')
}

function separateOnce(input, folder, format) {
  return new Promise((resolve, reject) => {
    const child = fork(import.meta.filename, ['separate-once', input, folder, format])
    child.once('message', resolve)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the child exited with ${code}`)))
  })
}

function ratio(runs, format, field) {
  const value = middle(runs[format].map((run) => run[field]))
  const ratios = runs[format].map((run, round) => run[field] / runs['16'][round][field])
  return value.toFixed(2).padStart(9) + middle(ratios).toFixed(2).padStart(8)
}

async function flacAlone(wav, folder) {
  const planes = [[], []]
  for await (const { channels } of (await openAudio(wav)).blocks)
    channels.forEach((plane, channel) => planes[channel].push(plane.slice()))
  const own = join(folder, 'own.flac')
  const times = []
  for (let round = 0; round < 3; round++) {
    const before = process.cpuUsage()
    const encoder = await openEncoder(own, { sampleRate, channels: 2, format: 'flac' })
    for (const [index, left] of planes[0].entries()) await encoder.write([left, planes[1][index]])
    await encoder.close()
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1e6)
  }
  const ownBytes = (await stat(own)).size
  console.log(`\none stem              CPU s       MB`)
  console.log(`own FLAC encoder${middle(times).toFixed(2).padStart(11)}${(ownBytes / 1e6).toFixed(2).padStart(9)}`)
  const reference = join(folder, 'reference.flac')
  const script =
    'import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); u = ' +
    'resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime)'
  const { status, stdout } = spawnSync('python3', ['-c', script, 'flac', '-s', '-f', '-5', '-o', reference, wav])
  if (status !== 0) return console.log('flac -5          (the program flac or python3 is not installed)')
  const bytes = (await stat(reference)).size
  console.log(`flac -5         ${Number(stdout).toFixed(2).padStart(11)}${(bytes / 1e6).toFixed(2).padStart(9)}`)
  console.log(`own / flac -5: ${(ownBytes / bytes).toFixed(3)} times its size`)
}

/** Chords, a bass, a beat and a voice-like tone; no two bars are alike. */
async function syntheticSong(path) {
  const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '16' })
  let state = 1
  const hiss = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32 - 0.5
  const planes = [new Float32Array(sampleRate), new Float32Array(sampleRate)]
  for (let second = 0; second < seconds; second++) {
    const root = 55 * 2 ** (((second * 7) % 12) / 12)
    for (let i = 0; i < sampleRate; i++) {
      const t = second + i / sampleRate
      const beat = Math.exp(-18 * (t % 0.5)) * 0.4 * hiss()
      const chord = [4, 5, 6].reduce((sum, step) => sum + 0.07 * Math.sin(2 * Math.PI * root * step * t), 0)
      const bass = 0.2 * Math.sin(2 * Math.PI * root * t)
      const sung = second % 8 < 5 ? 0.2 * Math.sin(2 * Math.PI * root * 8 * t + 4 * Math.sin(33 * t)) : 0
      planes[0][i] = beat + chord + bass + sung + 0.004 * hiss()
      planes[1][i] = 0.8 * beat + 1.1 * chord + bass + sung + 0.004 * hiss()
    }
    await writer.write(planes)
  }
  await writer.close()
  return path
}
