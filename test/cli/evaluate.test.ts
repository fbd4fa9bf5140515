import { execFile } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeModel } from '../separation/models.js'
import { maskNetwork } from '../separation/onnx-graph.js'
import { noise, writeWav } from '../separation/tracks.js'
import { command, Stemwork, stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100
const folder = temporaryFolder()
/** A model that takes half of everything for vocals, so that every score can be computed by hand. */
let half: string
let silent: string
let scratch: string
const before = process.env.TMPDIR
const a = {
  // No voice in the second of three seconds.
  vocals: [1, 2].map((seed) => noise(3 * rate, seed).map((value, i) => (Math.floor(i / rate) === 1 ? 0 : 0.4 * value))),
  accompaniments: [3, 4].map((seed) => noise(3 * rate, seed).map((value, i) => (i < rate ? 0.8 : 0.5) * value)),
}
const b = {
  vocals: [noise(2 * rate, 5)],
  drums: [noise(2 * rate, 6)],
  bass: [noise(2 * rate, 7)],
  other: [noise(2 * rate, 8), noise(2 * rate, 9)],
}

beforeAll(async () => {
  scratch = join(folder, 'scratch')
  await mkdir(scratch)
  process.env.TMPDIR = scratch
  await writeSong('songs/a', a)
  await writeSong('songs/b', { ...b, mixture: mixtureOfB() })
  half = await writeModel(
    join(folder, 'half'),
    maskNetwork(() => 0.5),
  )
  silent = await writeModel(
    join(folder, 'silent'),
    maskNetwork(() => 0),
  )
})
afterAll(async () => {
  if (before === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = before
})

async function writeSong(name: string, stems: Record<string, Float32Array[]>, sampleRate = rate): Promise<void> {
  await mkdir(join(folder, name), { recursive: true })
  for (const [stem, planes] of Object.entries(stems))
    await writeWav(join(folder, name, `${stem}.wav`), planes, sampleRate)
}

function mixtureOfB(): Float32Array[] {
  return b.other.map((plane) => plane.map((value, i) => value + b.vocals[0]![i]! + b.drums[0]![i]! + b.bass[0]![i]!))
}

function restOfB(): Float32Array[] {
  return b.other.map((plane) => plane.map((value, i) => value + b.drums[0]![i]! + b.bass[0]![i]!))
}

/** The definitions, implemented independently. */
function ratio(s: Float32Array[], e: (channel: number, i: number) => number, from = 0, to = s[0]!.length): number {
  let [signal, error] = [0, 0]
  s.forEach((plane, channel) => {
    for (let i = from; i < to; i++) {
      signal += plane[i]! ** 2
      error += (plane[i]! - e(channel, i)) ** 2
    }
  })
  return 10 * Math.log10(signal / error)
}

function blindRatio(s: Float32Array[], e: (channel: number, i: number) => number): number {
  let [se, ss] = [0, 0]
  s.forEach((plane, channel) => plane.forEach((value, i) => ((se += value * e(channel, i)), (ss += value * value))))
  return ratio(
    s.map((plane) => plane.map((value) => (value * se) / ss)),
    e,
  )
}

describe('stemwork evaluate', () => {
  it('gives every score by its definition, for songs of both layouts and with trivial baselines', async () => {
    const { status, stdout, stderr } = await stemwork([
      'evaluate',
      join(folder, 'songs'),
      '--model',
      half,
      '--model',
      `${half}=3+${silent}`,
      '--json',
      '--threads',
      '1',
    ])
    expect(status, stderr).toBe(0)
    const { seconds, peakMemoryBytes, summary, songs } = JSON.parse(stdout)
    expect(seconds).toBe(5)
    expect(peakMemoryBytes).toBeGreaterThan(50e6)
    expect(songs.map(({ song }: { song: string }) => song)).toEqual(['a', 'b'])
    const methods = [
      half,
      `${half}=3+${silent}`,
      'mixture',
      'silence',
      'mixture x 1/4',
      '0.35 x 150 Hz to 12 kHz',
      'centre mask',
    ]
    for (const song of songs) expect(song.methods.map(({ method }: { method: string }) => method)).toEqual(methods)

    const mixture = (channel: number, i: number) => a.vocals[channel]![i]! + a.accompaniments[channel]![i]!
    const estimate = (channel: number, i: number) => mixture(channel, i) / 2
    const [scores, ensemble] = songs[0].methods
    for (const stem of ['vocals', 'accompaniments'] as const) {
      const chunks = (stem === 'vocals' ? [0, 2] : [0, 1, 2])
        .map((second) => ratio(a[stem], estimate, second * rate, (second + 1) * rate))
        .sort((x, y) => x - y)
      expect(scores[stem].uSdr).toBeCloseTo(ratio(a[stem], estimate), 2)
      expect(scores[stem].siSdr).toBeCloseTo(blindRatio(a[stem], estimate), 2)
      expect(scores[stem].cSdr).toBeCloseTo(chunks.length === 2 ? (chunks[0]! + chunks[1]!) / 2 : chunks[1]!, 2)
      expect(scores.improvement[stem]).toBeCloseTo(ratio(a[stem], estimate) - ratio(a[stem], mixture), 2)
    }
    expect(scores.falseVocals).toBeCloseTo(20 * Math.log10(0.5), 2)
    expect(scores.sumError).toBeLessThan(1e-6)
    // Three quarters of one half and a quarter of nothing.
    expect(ensemble.vocals.uSdr).toBeCloseTo(
      ratio(a.vocals, (channel, i) => 0.375 * mixture(channel, i)),
      2,
    )

    const vocals = [b.vocals[0]!, b.vocals[0]!]
    const mixed = mixtureOfB()
    expect(songs[1].methods[0].vocals.uSdr).toBeCloseTo(
      ratio(vocals, (channel, i) => mixed[channel]![i]! / 2),
      2,
    )
    expect(songs[1].methods[0].accompaniments.uSdr).toBeCloseTo(
      ratio(restOfB(), (channel, i) => mixed[channel]![i]! / 2),
      2,
    )
    expect(songs[1].methods[0].falseVocals).toBeNull()

    expect(summary[0].vocals.uSdr).toBeCloseTo(
      (songs[0].methods[0].vocals.uSdr + songs[1].methods[0].vocals.uSdr) / 2,
      2,
    )
    expect(summary[0].falseVocals).toBe(scores.falseVocals)
    const work = songs.reduce(
      (sum: number, song: { methods: { workSeconds: number }[] }) => sum + song.methods[0]!.workSeconds,
      0,
    )
    expect(summary[0].realTimeFactor).toBeCloseTo(work / seconds, 2)
    expect(summary[2]).not.toHaveProperty('speed')
  })

  it('measures the estimates of several models joined as --ensemble says, and refuses other names', async () => {
    const [vocals, rest] = [noise(rate, 5), noise(rate, 6)]
    await writeSong('one/song', { vocals: [vocals], accompaniments: [rest] })
    const scoreOf = async (ensemble: string) => {
      const models = ['--model', `${half}+${silent}`, '--ensemble', ensemble]
      const { stdout } = await command(['evaluate', join(folder, 'one'), ...models, '--json', '--threads', '1'])
      return JSON.parse(stdout).summary[0].vocals.uSdr
    }
    const takes = (gain: number) => ratio([vocals], (_, i) => gain * (vocals[i]! + rest[i]!))
    expect(await scoreOf('avg_wave')).toBeCloseTo(takes(0.25), 2)
    expect(await scoreOf('max_fft')).toBeCloseTo(takes(0.5), 2)
    expect(await scoreOf('min_fft')).toBeCloseTo(takes(0), 2)
    const { status, stderr } = await command(['evaluate', join(folder, 'one'), '--ensemble', 'mean'])
    expect([status, stderr]).toEqual([2, expect.stringContaining('--ensemble must be one of avg_wave,')])
  })

  it('prints the means and every song as a table', async () => {
    const { status, stdout } = await command(['evaluate', join(folder, 'songs'), '--model', half])
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /^\| vocals \/ accompaniments, dB +\| +uSDR \| +cSDR \| +SI-SDR \| +over the mixture \| +false vocals \| +sum error \| +x real time \|\n/,
    )
    expect(stdout).toMatch(/\n\| mixture +\|.* 0\.00 \/ 0\.00 \| +0\.0 \|/)
    expect(stdout).toMatch(/\n\| b +\| +-?\d+\.\d\d \/ -?\d+\.\d\d \|/)
    expect(stdout).toMatch(/\n2 songs, 5 s of audio; peak memory \d+ MiB\.\n$/)
  })

  it.each([
    ['empty', {}, 'There is no song in'],
    ['lacking', { lacking: { vocals: [noise(99)] } }, 'The song "lacking" has no accompaniments.'],
    [
      'uneven',
      { uneven: { vocals: [noise(rate)], accompaniments: [noise(2 * rate)] } },
      'The song "uneven" cannot be used. The files have different lengths: vocals.wav ends after 1.00 s',
    ],
  ])('says what is wrong with a folder: %s', async (name, songs, message) => {
    await mkdir(join(folder, name), { recursive: true })
    for (const [song, stems] of Object.entries(songs)) await writeSong(join(name, song), stems)
    const { status, stdout, stderr } = await command(['evaluate', join(folder, name)])
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('names an unreadable file and stems of two rates, as JSON on request', async () => {
    await writeSong('rates/x', { vocals: [noise(rate)] })
    await writeSong('rates/x', { accompaniments: [noise(rate)] }, 48_000)
    const rates = await command(['evaluate', join(folder, 'rates'), '--json'])
    expect(JSON.parse(rates.stdout).error).toMatchObject({
      code: 'BAD_INPUT',
      message: expect.stringContaining('vocals.wav 44100 Hz, accompaniments.wav 48000 Hz'),
    })
    await writeFile(join(folder, 'rates', 'x', 'accompaniments.wav'), 'no audio at all')
    expect((await command(['evaluate', join(folder, 'rates')])).stderr).toContain(
      'The song "x" cannot be used. accompaniments.wav: The file is',
    )
    expect(await command(['evaluate', folder, '--model', 'a=0'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--model takes a name'),
    })
  })

  it('stops at Ctrl-C with status 130 and leaves nothing behind', async () => {
    const long = { vocals: [noise(15 * rate)], accompaniments: [noise(15 * rate, 2)] }
    await writeSong('long/x', long)
    const run = new Stemwork(['evaluate', join(folder, 'long')])
    await run.printed('stderr', /Evaluating/)
    run.kill('SIGINT')
    const { status, stdout, stderr } = await run.finished()
    expect({ status, stdout }).toEqual({ status: 130, stdout: '' })
    expect(stderr).toContain('Stopped; unfinished files were removed.')
    // onnxruntime leaves its own files.
    expect((await readdir(scratch)).filter((name) => name.startsWith('stemwork'))).toEqual([])
  })
})

describe('the benchmark of models', () => {
  it('prints a row for each pulled model, with quality, time, memory and licence', async () => {
    const script = fileURLToPath(new URL('../../benchmarks/models.mjs', import.meta.url))
    const songs = ['--songs', join(folder, 'songs', 'a')]
    const models = [half, 'umx-hq', 'embedded'].flatMap((model) => ['--model', model])
    const env = { ...process.env, STEMWORK_MODELS: join(folder, 'no models') }
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...songs, ...models], { env })
    const rows = stdout.split('\n').filter((line) => line.startsWith('| '))
    const measured = [...stdout.matchAll(/^\| (\w+) \| (\S+) \/ (\S+) \| (\S+) \| [\d.]+ \| \d+ MiB \| MIT \|$/gm)]
    expect(measured.map(([, name]) => name)).toEqual(['test', 'embedded'])
    expect(rows).toHaveLength(1 + measured.length)
    // Either stem is half of the mixture.
    const estimate = (channel: number, i: number) => (a.vocals[channel]![i]! + a.accompaniments[channel]![i]!) / 2
    const expected = [ratio(a.vocals, estimate), ratio(a.accompaniments, estimate), -20 * Math.log10(2)]
    expected.forEach((value, index) => expect(Number(measured[0]![2 + index])).toBeCloseTo(value, 1))
    expect(stdout).toContain('Not pulled, so not measured: umx-hq.')
  })
})
