// How much a model's output depends on what should not matter, and how much vocals it finds in music without any:
//   node stability.mjs <data> --model NAME [--model NAME ...]
// Half a minute of each song of <data>/everything-is-free, with a fade-in of a second, is separated as it is, and again with one thing changed.
// The figure is the signal-to-distortion ratio in dB between the two vocals, after undoing the change. Then the level of the vocals found in music
// without any, in dB below the music.
// Needs a build of the package (npm run build), and ffmpeg.
import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, extname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { openAudio } from '../build/core/media/decode/open-audio.js'
import { openWavWriter } from '../build/core/media/encode/wav-writer.js'
import { separate } from '../build/core/workflows/separation/separate.js'

const sampleRate = 44_100
const [from, seconds] = [60, 30]
/** In samples: a sixteenth, an eighth and half of the window. */
const shifts = [256, 512, 2048]
// No network was trained on these (HELD_OUT in mix.py).
const unheard = ['helland-orchestral-piano-rock', 'gm3-hip-hop-beats']

const offsetBy = (value) => (planes) => planes.map((plane) => plane.map((sample) => sample + value))
const scaledBy = (gain) => (planes) => planes.map((plane) => plane.map((sample) => gain * sample))
const swapped = ([left, right]) => [right, left]
const same = (planes) => planes
/** Each change of the mixture, its inverse for the vocals, and the sample rate of the file. */
const changes = [
  { name: 'left and right swapped', make: swapped, undo: swapped },
  ...shifts.map((shift) => ({
    name: `moved by ${shift} samples`,
    make: (planes) =>
      planes.map((plane) => Float32Array.from({ length: shift + plane.length }, (_, i) => plane[i - shift] ?? 0)),
    undo: (planes) => planes.map((plane) => plane.subarray(shift)),
  })),
  { name: 'offset of 0.2', make: offsetBy(0.2), undo: same },
  { name: '20 dB quieter', make: scaledBy(0.1), undo: scaledBy(10) },
  { name: 'at 48 kHz', make: same, undo: same, rate: 48_000 },
  { name: 'at 22.05 kHz', make: same, undo: same, rate: 22_050 },
]

const { values, positionals } = parseArgs({
  options: { model: { type: 'string', multiple: true } },
  allowPositionals: true,
})
const [data] = positionals
if (!data || !values.model) throw new Error('Usage: node stability.mjs <data> --model NAME [--model NAME ...]')

const folder = await mkdtemp(join(tmpdir(), 'stemwork-stability-'))
try {
  const songs = await readdir(join(data, 'everything-is-free'))
  const excerpts = songs.map((song) => [song, excerptOf(join(data, 'everything-is-free', song), `${song}.wav`)])
  const rows = changes.map(({ name }) => [`${name}, dB`])
  const falseVocals = unheard.map((name) => [`vocals found in ${name}, dB`])
  for (const model of values.model) {
    const sums = changes.map(() => 0)
    for (const [, excerpt] of excerpts) {
      const mixture = await planesOf(excerpt)
      const vocals = await vocalsOf(excerpt, model)
      for (const [index, change] of changes.entries()) sums[index] += await agreement(change, mixture, vocals, model)
    }
    sums.forEach((sum, index) => rows[index].push((sum / songs.length).toFixed(1)))
    for (const [index, name] of unheard.entries()) {
      const files = await readdir(join(data, 'instrumental'))
      const file = files.find((candidate) => basename(candidate, extname(candidate)) === name)
      const music = ffmpeg(join(data, 'instrumental', file), 'music.wav')
      falseVocals[index].push(decibels(power(await vocalsOf(music, model)) / power(await planesOf(music))).toFixed(1))
    }
  }
  const line = (cells) => `| ${cells.join(' | ')} |`
  const heads = ['the same song', ...values.model]
  console.log([heads, heads.map((_, i) => (i ? '---:' : '---')), ...rows, ...falseVocals].map(line).join('\n'))
} finally {
  await rm(folder, { recursive: true })
}

async function agreement({ make, undo, rate = sampleRate }, mixture, vocals, model) {
  const changed = await write(make(mixture), 'changed.wav')
  const input = rate === sampleRate ? changed : ffmpeg(changed, 'resampled.wav', rate)
  await vocalsOf(input, model)
  const found = join(folder, 'vocals.wav')
  const undone = undo(await planesOf(rate === sampleRate ? found : ffmpeg(found, 'back.wav', sampleRate)))
  const reference =
    rate < sampleRate
      ? await planesOf(ffmpeg(ffmpeg(await write(vocals, 'all.wav'), 'low.wav', rate), 'high.wav', sampleRate))
      : vocals
  const difference = reference.map((plane, channel) => plane.map((sample, i) => sample - (undone[channel][i] ?? 0)))
  return decibels(power(reference) / power(difference))
}

async function vocalsOf(input, model) {
  const outputs = { vocals: join(folder, 'vocals.wav'), accompaniments: join(folder, 'accompaniments.wav') }
  for (const path of Object.values(outputs)) await rm(path, { force: true })
  await separate(input, { outputs, model, format: '32f' })
  return planesOf(outputs.vocals)
}

function excerptOf(song, name) {
  const path = join(folder, name)
  const inputs = ['vocals', 'accompaniments'].flatMap((stem) => [
    '-ss',
    from,
    '-t',
    seconds,
    '-i',
    join(song, `${stem}.ogg`),
  ])
  // Without the fade, an excerpt shifted in time would begin with a click.
  run([
    ...inputs,
    '-filter_complex',
    'amix=inputs=2:normalize=0,afade=d=1',
    '-ar',
    sampleRate,
    '-c:a',
    'pcm_f32le',
    path,
  ])
  return path
}

function ffmpeg(input, name, rate = sampleRate) {
  const path = join(folder, name)
  run(['-i', input, '-ar', rate, '-ac', 2, '-c:a', 'pcm_f32le', path])
  return path
}

function run(options) {
  execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...options.map(String)])
}

async function write(planes, name) {
  const path = join(folder, name)
  const writer = await openWavWriter(path, { sampleRate, channels: 2, format: '32f' })
  await writer.write(planes)
  await writer.close()
  return path
}

async function planesOf(path) {
  const blocks = []
  for await (const { channels } of (await openAudio(path)).blocks) blocks.push(channels.map((plane) => plane.slice()))
  return [0, 1].map((channel) => {
    const plane = new Float32Array(blocks.reduce((sum, [first]) => sum + first.length, 0))
    let at = 0
    for (const block of blocks) {
      plane.set(block[channel], at)
      at += block[0].length
    }
    return plane
  })
}

function power(planes) {
  return planes.reduce((sum, plane) => sum + plane.reduce((total, sample) => total + sample * sample, 0), 0)
}

function decibels(ratio) {
  return 10 * Math.log10(ratio)
}
