// Tempo and pitch compared with sox and rubberband (versions 2 and 3 of its engine), on 12 s each of drums, voices and
// songs of ../shared/data: how much sharpness onsets lose, how far they are displaced, the distance of spectra of 46
// and of 12 ms from the original's, and seconds of audio per second of CPU time. node benchmarks/stretch.mjs [--quick]
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAudio } from '../build/core/media/decode/open-audio.js'
import { stretched } from '../build/core/media/dsp/stretch/stretched.js'
import { onsetLoss, spectralDistance } from './stretch/measures.mjs'

const rate = 44_100
const seconds = 12
const data = join(import.meta.dirname, '../../shared/data')
const song = (name) => ['vocals', 'accompaniments'].map((stem) => `everything-is-free/${name}/${stem}.ogg`)
const clips = [
  ['drums', 20, ['instrumental/libre-drums.ogg']],
  ['speech', 5, ['voices/kerstin-german.ogg']],
  ['chant', 30, ['voices/chant-solo.ogg']],
  ['song (lithium)', 60, song('lithium')],
  ['song (potassium)', 60, song('potassium')],
  ['band', 60, ['instrumental/digabi-pop-rock-piano.ogg']],
]
const quick = process.argv.includes('--quick')
const changes = quick
  ? [{ tempo: 0.8, semitones: 0 }]
  : [
      { tempo: 0.8, semitones: 0 },
      { tempo: 1.25, semitones: 0 },
      { tempo: 1, semitones: 3 },
      { tempo: 1, semitones: -3 },
    ]

if (!existsSync(data)) {
  console.log('There is no ../shared/data, so there is nothing to measure.')
  process.exit(0)
}
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const programs = {
  sox: ({ tempo, semitones }, from, to) =>
    ['sox', from, '-b', '24', to, ...(tempo === 1 ? ['pitch', 100 * semitones] : ['tempo', '-m', tempo])].map(String),
  'rubberband 2': (change, from, to) => rubberband('-2', change, from, to),
  'rubberband 3': (change, from, to) => rubberband('-3', change, from, to),
}
const rubberband = (engine, { tempo, semitones }, from, to) =>
  ['rubberband', '-q', engine, '-T', tempo, '-p', semitones, from, to].map(String)

try {
  console.log(`${cpus()[0]?.model.trim()}, load ${loadavg()[0].toFixed(1)} at the start; Node ${process.version}`)
  for (const change of changes) {
    console.log(`\ntempo ${change.tempo}, ${change.semitones} semitones\n`)
    console.log(
      '| clip | by | onset loss (dB) | onset shift (ms) | distance, 46 ms (dB) | distance, 12 ms (dB) | speed |\n' +
        '|---|---|---|---|---|---|---|',
    )
    for (const clip of clips) await compare(clip, change)
  }
} finally {
  await rm(folder, { recursive: true })
}

async function compare([name, start, files], change) {
  const path = join(folder, 'clip.wav')
  const inputs = files.flatMap((file) => ['-ss', start, '-t', seconds, '-i', join(data, file)]).map(String)
  const mix = `amix=inputs=${files.length}:normalize=0`
  execFileSync(
    'ffmpeg',
    ['-v', 'error', '-y', ...inputs, '-filter_complex', mix, '-ar', rate, '-ac', 2, path].map(String),
  )
  const original = mono(await samplesOf(await openAudio(path)))
  for (const [by, make] of Object.entries({ stemwork: own, ...programs })) {
    const { there, back, cpu } = make === own ? await own(path, change) : await other(make, path, change)
    const ratio = 1 / change.tempo
    const { loss, off } = onsetLoss(original, there, rate, ratio)
    // At another pitch, spectra differ by design: the audio shifted back to its pitch is compared instead.
    const [compared, at] = change.semitones === 0 ? [there, ratio] : [back, 1]
    const distances = [2048, 512].map((size) => spectralDistance(original, compared, rate, at, size).toFixed(2))
    const speed = `${(seconds / cpu).toFixed(0)} x`
    console.log(`| ${name} | ${by} | ${loss.toFixed(1)} | ${off.toFixed(0)} | ${distances.join(' | ')} | ${speed} |`)
  }
}

function opposite({ tempo, semitones }) {
  return { tempo: 1 / tempo, semitones: -semitones }
}

async function own(path, change) {
  const stream = await openAudio(path)
  const planes = await samplesOf(stream)
  const usage = process.cpuUsage()
  const there = await samplesOf(stretched(streamOf(stream, planes), change))
  const { user, system } = process.cpuUsage(usage)
  const back = mono(await samplesOf(stretched(streamOf(stream, there), opposite(change))))
  return { there: mono(there), back, cpu: (user + system) / 1e6 }
}

async function other(command, path, change) {
  const [there, back] = ['there.wav', 'back.wav'].map((name) => join(folder, name))
  const cpu = processorSeconds(command(change, path, there))
  processorSeconds(command(opposite(change), there, back))
  const read = async (file) => mono(await samplesOf(await openAudio(file)))
  return { there: await read(there), back: await read(back), cpu }
}

/** CPU time, from what bash's `times` prints for its child processes: minutes and seconds of user and system time. */
function processorSeconds(command) {
  const { stdout, status, stderr } = spawnSync('bash', ['-c', '"$@" || exit 1; times', 'bash', ...command])
  if (status !== 0) throw new Error(`${command[0]} failed: ${String(stderr)}`)
  const [user, system] = String(stdout).trim().split('\n').at(-1).split(' ')
  return [user, system].reduce(
    (sum, time) => sum + 60 * Number.parseInt(time) + Number.parseFloat(time.split('m')[1]),
    0,
  )
}

function streamOf(stream, planes) {
  return { ...stream, blocks: [{ channels: planes }] }
}

async function samplesOf(stream) {
  const blocks = []
  for await (const { channels } of stream.blocks) blocks.push(channels)
  return Array.from({ length: stream.channelCount }, (_, channel) => {
    const parts = blocks.map((channels) => channels[channel])
    const whole = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const part of parts) {
      whole.set(part, at)
      at += part.length
    }
    return whole
  })
}

function mono([left, right]) {
  return left.map((value, i) => (value + right[i]) / 2)
}
