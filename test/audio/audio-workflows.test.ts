import { execFileSync, spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loudnessWorkflow } from '../../src/core/workflows/loudness/loudness-workflow.js'
import { transcodeWorkflow } from '../../src/core/workflows/transcode/transcode-workflow.js'
import type { Runner, WorkResult } from '../../src/core/engine/ports/runner.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { WorkflowRegistry } from '../../src/core/engine/workflow/registry.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import type { OutputFormat } from '../../src/core/media/encode/output-format.js'
import { RealFft } from '../../src/core/media/dsp/fft.js'
import { readTags } from '../../src/core/media/tags/read-tags.js'
import { hasProgram } from '../media/programs.js'
import { fixture } from '../media/test-signal.js'
import { orderOf, run as runOrder } from '../runner/run-order.js'
import { readAudio } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const loudness = loudnessWorkflow()
const transcode = transcodeWorkflow()
const hasFfmpeg = hasProgram('ffmpeg')
const hasSox = hasProgram('sox')
const rate = 44_100

const folder = temporaryFolder()
let runner: Runner
let song: string
/** Ten seconds of chords and noise with swells, a click and a pause, 24-bit stereo. */
let planes: Float32Array[]
beforeAll(async () => {
  const registry = new WorkflowRegistry([loudness, transcode])
  runner = processRunner({ resolve: (id) => registry.require(id) })
  planes = [1, 2].map((channel) => {
    let seed = channel
    const random = () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647 - 0.5
    return new Float32Array(10 * rate).map((_, i) => {
      const t = i / rate
      const swell = t > 6 && t < 7 ? 0 : 0.3 + 0.25 * Math.sin(t * 1.3 * channel)
      const tones = [110, 277.2, 659.3, 3000].reduce((sum, hertz) => sum + Math.sin(2 * Math.PI * hertz * t) / 4, 0)
      const value = i === 5 * rate ? 0.95 : swell * (tones + 0.3 * random())
      return Math.round(value * 8_388_608) / 8_388_608
    })
  })
  song = join(folder, 'song.wav')
  await write(song, planes, rate, '24')
})
afterAll(async () => {
  await runner.close()
})

async function write(path: string, audio: Float32Array[], sampleRate: number, format: OutputFormat): Promise<void> {
  const tags = { title: 'Tones', artist: 'Generator' }
  const encoder = await openEncoder(path, { sampleRate, channels: audio.length, format, tags })
  await encoder.write(audio)
  await encoder.close()
}

async function run(workflow: Workflow, path: string, params: Record<string, unknown> = {}): Promise<WorkResult> {
  return await runOrder(runner, await orderOf(workflow, { inputUrl: path }, folder, params))
}

async function transcoded(params: Record<string, unknown>, path = song) {
  const { outputs, details } = await run(transcode, path, params)
  const { path: made } = outputs.audio!
  return { path: made, details, audio: await readAudio(made), output: outputs.audio }
}

/** A file decoded by ffmpeg, as floats: one plane per channel. */
function throughFfmpeg(path: string, channels: number, ...args: string[]): Float32Array[] {
  const raw = execFileSync('ffmpeg', ['-v', 'error', '-i', path, ...args, '-f', 'f32le', '-'], { maxBuffer: 2 ** 28 })
  const all = new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength))
  return Array.from({ length: channels }, (_, channel) => all.filter((_, i) => i % channels === channel))
}

function worst(one: Float32Array, other: Float32Array): number {
  let most = one.length === other.length ? 0 : Infinity
  for (let i = 0; i < one.length; i++) most = Math.max(most, Math.abs(one[i]! - other[i]!))
  return most
}

describe('service/loudness', () => {
  async function measured(path: string, params = {}) {
    const result = await run(loudness, path, params)
    return { ...result, report: JSON.parse(await readFile(result.outputs.report!.path, 'utf8')) }
  }

  it('reports loudness figures and their course, draws them, and puts the figures in the details', async () => {
    const { report, outputs, details } = await measured(song)
    expect(Object.keys(outputs)).toEqual(['report', 'picture'])
    expect(report).toMatchObject({ seconds: 10, sampleRate: rate, channels: 2 })
    expect(details.loudness).toMatchObject({ integratedLufs: report.integratedLufs, truePeakDbtp: report.truePeakDbtp })
    expect(report.course.momentaryLufs).toHaveLength(100)
    const picture = await readFile(outputs.picture!.path, 'utf8')
    expect(picture).toMatch(/^<svg xmlns=.*<\/svg>\n$/s)
    expect(picture).toContain(`Integrated ${report.integratedLufs.toFixed(1)} LUFS`)
    expect(picture).not.toMatch(/NaN|Infinity|undefined/)
  })

  it.skipIf(!hasFfmpeg)(
    'agrees with ebur128 of ffmpeg within 0.1 LU, also for mono, 5.1 and another rate (skipped without it)',
    async () => {
      const six = join(folder, 'six.wav')
      await write(six, [planes[0]!, planes[1]!, planes[0]!, planes[1]!, planes[1]!, planes[0]!], rate, '24')
      const mono = join(folder, 'mono.flac')
      await write(mono, [planes[0]!.subarray(0, 4 * rate)], 32_000, 'flac')
      // A tone that rises evenly, so that the range does not depend on a single value.
      const ramp = join(folder, 'ramp.wav')
      const levels = new Float32Array(60 * rate).map((_, i) => 10 ** ((i / rate / 3 - 35) / 20))
      await write(ramp, [levels.map((level, i) => level * Math.sin(i / 7))], rate, '24')
      for (const path of [song, six, mono, ramp, ...['stereo.mp3', 'mono.mp3', 'mono.m4a'].map(fixture)]) {
        const args = [
          '-nostats',
          '-guess_layout_max',
          '8',
          '-i',
          path,
          '-af',
          'ebur128=peak=true+sample:framelog=verbose',
          '-f',
          'null',
          '-',
        ]
        const { stderr } = spawnSync('ffmpeg', args, { encoding: 'utf8' })
        const summary = stderr.slice(stderr.lastIndexOf('Summary:'))
        const value = (name: RegExp) => Number(new RegExp(`${name.source}\\s+(-?[\\d.]+)`).exec(summary)?.[1])
        const { report } = await measured(path, { picture: false })
        const near = (one: number | null, other: number) =>
          expect(Math.abs((one ?? 0) - other), `${path} ${summary}`).toBeLessThanOrEqual(0.1)
        near(report.integratedLufs, value(/I:/))
        if (path === ramp) near(report.rangeLu, value(/LRA:/))
        near(report.truePeakDbtp, value(/True peak:\s+Peak:/))
        near(report.samplePeakDbfs, value(/Sample peak:\s+Peak:/))
      }
    },
  )

  it('writes audio at a given loudness, with its tags and name, no louder than the ceiling allows', async () => {
    const { report, outputs } = await measured(song, { normalizeTo: -30, format: 'flac' })
    expect(outputs.normalized).toMatchObject({ fileName: 'normalized.flac', downloadName: 'Tones (-30 LUFS).flac' })
    expect(await readTags(outputs.normalized!.path)).toEqual({ title: 'Tones', artist: 'Generator' })
    const quiet = await measured(outputs.normalized!.path)
    expect(quiet.report.integratedLufs).toBeCloseTo(-30, 1)
    expect(report).not.toHaveProperty('warnings')

    const loud = await measured(song, { normalizeTo: -5, ceiling: -2, format: '32f' })
    expect(loud.details.warnings).toEqual([expect.stringMatching(/^Peaks prevent -5 LUFS/)])
    const made = await measured(loud.outputs.normalized!.path)
    expect(made.report.truePeakDbtp).toBeCloseTo(-2, 1)
    expect(made.report.integratedLufs).toBeCloseTo(report.integratedLufs + Number(loud.details.gainDb), 1)
  })

  it('measures what it writes: six channels at 96 kHz as the two channels at 48 kHz that MP3 can store', async () => {
    const six = join(folder, 'wide.wav')
    const some = planes.map((plane) => plane.subarray(0, 4 * rate))
    await write(six, [some[0]!, some[1]!, some[1]!, some[0]!, some[1]!, some[0]!], 96_000, '24')
    const given = await measured(six, { normalizeTo: -24, format: 'mp3' })
    expect(given.report.channels).toBe(6)
    const made = await measured(given.outputs.normalized!.path)
    expect(made.report).toMatchObject({ channels: 2, sampleRate: 48_000 })
    expect(made.report.integratedLufs).toBeCloseTo(-24, 1)
  })

  it('says why silence and less than 400 ms have no loudness, and leaves them as they are', async () => {
    const silence = join(folder, 'silence.wav')
    await write(silence, [new Float32Array(2 * rate)], rate, '16')
    const { report, outputs } = await measured(silence, { normalizeTo: -14 })
    expect(report).toMatchObject({ integratedLufs: null, rangeLu: null, truePeakDbtp: null })
    expect(report.warnings).toEqual([expect.stringContaining('louder than -70 LUFS')])
    expect((await readAudio(outputs.normalized!.path)).channels[0]!.every((value) => value === 0)).toBe(true)
    const short = join(folder, 'short.wav')
    await write(short, [planes[0]!.subarray(0, 0.39 * rate)], rate, '16')
    expect((await measured(short)).report.warnings).toEqual([expect.stringContaining('shorter than 400 ms')])
  })

  it('refuses unknown params, and refuses to run in the host', async () => {
    expect(loudness.params.safeParse({ inputUrl: 'https://a.org/b', normalizeTo: 3 }).success).toBe(false)
    expect(loudness.params.safeParse({ inputUrl: 'https://a.org/b', loud: true }).success).toBe(false)
    const [stage] = loudness.stages
    await expect(stage!.run({} as Parameters<NonNullable<typeof stage>['run']>[0])).rejects.toThrow('child process')
    expect(() => loudnessWorkflow({ format: '8' } as never)).toThrow('format')
  })
})

describe('service/transcode', () => {
  it('says that a cover was too large to be kept', async () => {
    const bytes = new Uint8Array(5 * 2 ** 20)
    bytes.set([0xff, 0xd8, 0xff])
    const path = join(folder, 'covered.flac')
    const tags = { title: 'Covered', cover: { contentType: 'image/jpeg' as const, bytes } }
    const encoder = await openEncoder(path, { sampleRate: rate, channels: 2, format: 'flac', tags })
    await encoder.write(planes)
    await encoder.close()
    const { path: made, details } = await transcoded({ format: 'flac' }, path)
    expect(details.warnings).toEqual(['The cover of 5.0 MiB was left out: at most 4.0 MiB are kept.'])
    expect(await readTags(made)).toEqual({ title: 'Covered' })
  })

  it('keeps every sample, the tags and the name unless the job asks for something else', async () => {
    for (const [format, ending] of [
      ['24', 'wav'],
      ['32f', 'wav'],
      ['flac24', 'flac'],
      ['aiff24', 'aiff'],
      ['aiff32f', 'aiff'],
    ]) {
      const { audio, path, output } = await transcoded({ format })
      expect(audio.sampleRate).toBe(rate)
      expect(audio.channels.map((plane, channel) => worst(plane, planes[channel]!))).toEqual([0, 0])
      expect(await readTags(path)).toEqual({ title: 'Tones', artist: 'Generator' })
      expect(output!.downloadName).toBe(`Tones.${ending}`)
    }
    expect(await readTags((await transcoded({ keepTags: false })).path)).toEqual({})
  })

  it('writes every format that there is an encoder for, with the right length', async () => {
    const formats = transcode.params.safeParse({ inputUrl: 'https://a.org/b', format: 'none' }).error?.issues[0]
      ?.message
    for (const format of formats!.replace(/expected one of |, not .*/g, '').split(', ')) {
      const { audio, details, path } = await transcoded({ format, startSeconds: 1, lengthSeconds: 2 })
      expect(details.seconds, format).toBe(2)
      expect(audio.channels[0]!.length, format).toBe(2 * rate)
      expect(await readTags(path), format).toMatchObject({ title: 'Tones', artist: 'Generator' })
    }
  })

  it('dithers what it rounds: the error is noise of the right level that follows no sample', async () => {
    const rounded = async (dither: boolean) => {
      const { audio } = await transcoded({ format: '16', dither })
      return audio.channels[0]!.map((value, i) => (value - planes[0]![i]!) * 32_768)
    }
    const power = (values: Float32Array) => values.reduce((sum, value) => sum + value * value, 0) / values.length
    // A rounding error has a power of 1/12 of a squared step; with triangular dither, three times as much.
    expect(power((await rounded(false)).subarray(0, 5 * rate))).toBeCloseTo(1 / 12, 2)
    expect(power((await rounded(true)).subarray(0, 5 * rate))).toBeCloseTo(1 / 4, 2)
    const { audio } = await transcoded({ format: '16' })
    // The pause is still silent.
    expect(
      audio.channels[0]!.subarray(Math.round(6.5 * rate), Math.round(6.9 * rate)).every((value) => value === 0),
    ).toBe(true)
  })

  it.each([
    ['16', 16],
    ['flac', 16],
    ['24', 24],
    ['flac24', 24],
    ['aiff', 16],
    ['aiff24', 24],
  ] as const)(
    'dithers %s so that a tone below one step has no overtones, above a flat floor of noise',
    async (format, bits) => {
      const [size, bin] = [65_536, 1000]
      const step = 2 / 2 ** bits
      const path = join(folder, `quiet-${format}.wav`)
      const tone = Float32Array.from({ length: size }, (_, i) => 0.8 * step * Math.sin((2 * Math.PI * bin * i) / size))
      await write(path, [tone], rate, '32f')
      const powers = async (dither: boolean) => {
        const { audio } = await transcoded({ format, dither }, path)
        const fft = await RealFft.create(size)
        fft.time().set(audio.channels[0]!.map((value) => value / step))
        fft.forward(1)
        const spectrum = fft.spectrum().slice()
        fft.close()
        return Float64Array.from({ length: size / 2 }, (_, k) => spectrum[2 * k]! ** 2 + spectrum[2 * k + 1]! ** 2)
      }
      // White noise of 1/4 of a squared step: 1/12 from rounding and 1/6 from the dither.
      const floor = size / 4
      const [dithered, plain] = [await powers(true), await powers(false)]
      for (const overtone of [3, 5, 9]) {
        expect(plain[overtone * bin]).toBeGreaterThan(100 * floor)
        expect(dithered[overtone * bin]).toBeLessThan(15 * floor)
      }
      const mean = (from: number, to: number) => {
        const values = dithered.subarray(from, to).filter((_, k) => from + k !== bin)
        return values.reduce((sum, value) => sum + value, 0) / values.length
      }
      const band = size / 16
      for (let from = 1; from + band < size / 2; from += band)
        expect(Math.abs(10 * Math.log10(mean(from, from + band) / floor))).toBeLessThan(0.5)
      // The tone itself keeps its level.
      expect(Math.sqrt(dithered[bin]!) / (size / 2)).toBeCloseTo(0.8, 1)
    },
  )

  it.skipIf(!hasSox)('gives the same length as sox at every rate, to the sample (skipped without it)', async () => {
    for (const sampleRate of [8000, 22_050, 32_000, 48_000, 88_200, 192_000]) {
      const { audio } = await transcoded({ format: '16', sampleRate, lengthSeconds: 1.2 })
      const cut = 1.2 * rate
      const path = join(folder, `sox-${sampleRate}.wav`)
      execFileSync('sox', [song, '-b', '16', path, 'trim', '0', `${cut}s`, 'rate', String(sampleRate)])
      const other = (await readAudio(path)).channels[0]!.length
      expect(audio.channels[0]!.length, String(sampleRate)).toBe(1.2 * sampleRate)
      expect(Math.abs(audio.channels[0]!.length - other)).toBeLessThanOrEqual(1)
    }
  })

  it.skipIf(!hasFfmpeg)('cuts, fades and amplifies as ffmpeg does (skipped without it)', async () => {
    const { audio } = await transcoded({
      format: '32f',
      startSeconds: 1.5,
      lengthSeconds: 3.25,
      fadeInSeconds: 0.5,
      fadeOutSeconds: 1,
      gainDb: -6,
    })
    const [start, end] = [Math.round(1.5 * rate), Math.round(1.5 * rate) + Math.round(3.25 * rate)]
    const fades = 'afade=t=in:d=0.5,afade=t=out:st=2.25:d=1'
    const filter = `atrim=start_sample=${start}:end_sample=${end},asetpts=N/SR/TB,${fades},volume=-6dB`
    const other = throughFfmpeg(song, 2, '-af', filter)
    // One step of a linear fade over a second is 1 / 44100.
    for (const [channel, plane] of audio.channels.entries()) expect(worst(plane, other[channel]!)).toBeLessThan(3e-5)
  })

  it.skipIf(!hasSox)('changes rate and channels as sox does (skipped without it)', async () => {
    const { audio } = await transcoded({ format: '32f', sampleRate: 48_000, channels: 1 })
    const path = join(folder, 'sox.wav')
    execFileSync('sox', [song, '-e', 'float', '-b', '32', path, 'remix', '1v0.5,2v0.5', 'rate', '-v', '48000'])
    const other = (await readAudio(path)).channels[0]!
    expect(audio.channels).toHaveLength(1)
    expect(audio.channels[0]!.length).toBe(Math.ceil((10 * rate * 48_000) / rate))
    expect(Math.abs(audio.channels[0]!.length - other.length)).toBeLessThanOrEqual(1)
    // The filters differ near the highest frequencies and at the click.
    let [energy, error] = [0, 0]
    for (let i = 4800; i < 4.9 * 48_000; i++) {
      energy += other[i]! ** 2
      error += (audio.channels[0]![i]! - other[i]!) ** 2
    }
    expect(10 * Math.log10(energy / error)).toBeGreaterThan(25)
  })

  it('fades audio that is shorter than its fades, and audio of unknown length', async () => {
    const { audio } = await transcoded({ format: '32f', startSeconds: 9.9, fadeInSeconds: 1, fadeOutSeconds: 1 })
    expect(audio.channels[0]!.length).toBe(0.1 * rate)
    for (const end of [0, -1]) expect(audio.channels[0]!.at(end)).toBeCloseTo(0, 9)
    const { audio: whole } = await transcoded({ format: '32f', fadeOutSeconds: 0.25 }, fixture('stereo.mp3'))
    expect(whole.channels[0]!.at(-1)).toBeCloseTo(0, 9)
  })

  it('mixes down and resamples audio that MP3 cannot hold, and says so in the details', async () => {
    const path = join(folder, 'wide.wav')
    await write(
      path,
      Array.from({ length: 6 }, () => planes[0]!.subarray(0, 9600)),
      96_000,
      '16',
    )
    const { details } = await transcoded({ format: 'mp3' }, path)
    expect(details).toMatchObject({ channels: 2, sampleRate: 48_000, seconds: 0.1 })
    const wav = await transcoded({ format: 'flac24' }, path)
    expect(wav.audio.channels).toHaveLength(6)
  })

  it('writes MP3 of audio at any rate, at one that its encoder has', async () => {
    const path = join(folder, 'low.wav')
    for (const [given, expected] of [
      [8000, 32_000],
      [22_050, 32_000],
      [37_800, 32_000],
      [44_100, 44_100],
      [50_000, 48_000],
      [88_200, 44_100],
    ] as const) {
      await write(path, [planes[0]!.subarray(0, given / 10)], given, '16')
      const { audio, details } = await transcoded({ format: 'mp3' }, path)
      expect(details, String(given)).toMatchObject({ sampleRate: expected, seconds: 0.1 })
      expect(audio.channels[0]!.length).toBe(expected / 10)
    }
    await expect(run(transcode, song, { format: 'mp3', sampleRate: 22_050 })).rejects.toMatchObject({
      cause: { message: expect.stringContaining('MP3 has no rate of 22050 Hz: expected one of 44100, 48000, 32000') },
    })
  })

  it('refuses a start after the end, and files that are not audio', async () => {
    await expect(run(transcode, song, { startSeconds: 10 })).rejects.toMatchObject({
      code: 'BAD_INPUT',
      reason: 'no_audio',
    })
    const letter = join(folder, 'letter.txt')
    await writeFile(letter, 'Dear listener,')
    await expect(run(transcode, letter)).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'unsupported_format' })
  })
})
