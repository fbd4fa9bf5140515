import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { toStereo } from '../../src/core/media/dsp/stereo.js'
import { foreignFiles, ownFormats, type TableRow } from './format-table.js'
import { hasProgram, runProgram } from './programs.js'
import { signalToNoise } from './test-signal.js'
import { collect, maxDifference, readAudio, sine, writeWav } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const hasFfmpeg = hasProgram('ffmpeg')
const rows = [...ownFormats, ...foreignFiles]
const seconds = 1
const folder = temporaryFolder()

/** Two calls of ffmpeg encode all files, and decode all of them as a reference. */
beforeAll(async () => {
  if (!hasFfmpeg) return
  await mkdir(join(folder, 'reference'))
  // A sweep, so that no two moments are equal.
  const left = Float32Array.from({ length: seconds * 44_100 }, (_, n) => 0.5 * Math.sin(n * n * 1e-5))
  await writeWav(join(folder, 'signal.wav'), [left, sine(left.length, 440, 44_100, 0.3)], 44_100)
  const video = ['-f', 'lavfi', '-i', `testsrc=s=64x64:r=25:d=${seconds}`]
  const encoded = rows.flatMap(({ file, codec, isVideo }) => [
    '-map',
    '0:a',
    ...(isVideo ? ['-map', '1:v'] : []),
    '-c:a',
    ...codec.split(' '),
    '-strict',
    '-2',
    file,
  ])
  await runProgram('ffmpeg', ['-v', 'error', '-i', 'signal.wav', ...video, ...encoded], { cwd: folder })
  const inputs = rows.flatMap(({ file }) => ['-i', file])
  const decoded = rows.flatMap(({ file }, index) => [
    '-map',
    `${index}:a`,
    '-c:a',
    'pcm_f32le',
    '-f',
    'f32le',
    `reference/${file}`,
  ])
  await runProgram('ffmpeg', ['-v', 'error', ...inputs, ...decoded], { cwd: folder })
}, 120_000)

async function referenceOf(file: string): Promise<Float32Array[]> {
  const bytes = await readFile(join(folder, 'reference', file))
  const interleaved = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
  return [0, 1].map((channel) => interleaved.filter((_, index) => index % 2 === channel))
}

/** Delay of `ours` in samples, by the largest correlation of a stretch from the middle. */
function lagOf(ours: Float32Array, theirs: Float32Array): number {
  const from = Math.floor(theirs.length / 2)
  let best = 0
  let largest = -Infinity
  for (let lag = -3000; lag <= 3000; lag++) {
    let sum = 0
    for (let i = from; i < from + 2000; i += 3) sum += theirs[i]! * (ours[i + lag] ?? 0)
    if (sum > largest) [largest, best] = [sum, lag]
  }
  return best
}

async function compare({ file }: TableRow, decoders?: { ffmpeg: boolean }) {
  const stream = await openAudio(join(folder, file), { decoders })
  const ours = await collect(stream)
  const theirs = await referenceOf(file)
  const lag = lagOf(ours[0]!, theirs[0]!)
  const shared = Math.min(ours[0]!.length - Math.max(0, lag), theirs[0]!.length + Math.min(0, lag)) - 100
  const ratios = [0, 1].map((channel) =>
    signalToNoise(
      theirs[channel]!.subarray(Math.max(0, -lag), Math.max(0, -lag) + shared),
      ours[channel]!.subarray(Math.max(0, lag), Math.max(0, lag) + shared),
    ),
  )
  return {
    lag,
    extraSamples: ours[0]!.length - theirs[0]!.length,
    decibels: Math.min(...ratios),
    warnings: stream.warnings,
  }
}

describe.skipIf(!hasFfmpeg)('decoding agrees with that of ffmpeg', () => {
  it.each(ownFormats)('$file', async (row) => {
    const { lag, extraSamples, decibels, warnings } = await compare(row)
    expect({ lag, extraSamples, warnings }).toEqual({
      lag: row.lag ?? 0,
      extraSamples: row.extraSamples ?? 0,
      warnings: [],
    })
    expect(decibels).toBeGreaterThanOrEqual(row.decibels)
  })

  it.each(foreignFiles)('$file, with ffmpeg allowed', async (row) => {
    const refusal = openAudio(join(folder, row.file))
    await expect(refusal).rejects.toMatchObject({
      code: 'BAD_INPUT',
      reason: 'unsupported_format',
      message: expect.stringMatching(/^The (file|AIFF file) .*ffmpeg/),
    })
    const { lag, extraSamples, decibels, warnings } = await compare(row, { ffmpeg: true })
    expect({ lag, extraSamples, warnings }).toEqual({
      lag: row.lag ?? 0,
      extraSamples: row.extraSamples ?? 0,
      warnings: [],
    })
    expect(decibels).toBeGreaterThanOrEqual(row.decibels)
  })
})

/** Layouts that the encoder stores as they are. */
const surround: readonly (readonly [file: string, codec: string, layouts: string[]])[] = [
  ['alac.m4a', 'alac', ['5.1', '7.1(wide)']],
  ['alac.mka', 'alac', ['5.1', '7.1(wide)']],
  ['aac.m4a', 'aac', ['5.1']],
  ['flac.mka', 'flac', ['5.1', '7.1']],
  ['vorbis.ogg', 'libvorbis', ['5.1', '7.1']],
  ['vorbis.mka', 'libvorbis', ['5.1', '7.1']],
  ['opus.opus', 'libopus -mapping_family 1', ['5.1']],
  ['opus.mp4', 'libopus -mapping_family 1', ['5.1']],
  ['opus.webm', 'libopus -mapping_family 1', ['5.1']],
]

describe.skipIf(!hasFfmpeg)('more channels than two', () => {
  it.each(surround)('of %s are mixed from the right speakers', async (name, codec, layouts) => {
    for (const layout of layouts) {
      const count = layout === '5.1' ? 6 : 8
      const tones = Array.from({ length: count }, (_, i) => `${(i + 1) / 50}*sin(${1000 * (i + 2)}*t)`)
      const source = ['-f', 'lavfi', '-i', `aevalsrc=${tones.join('|')}:c=${layout}:s=48000:d=1`]
      const encoded = ['-c:a', ...codec.split(' '), '-b:a', '1024k', `${count}-${name}`]
      await runProgram('ffmpeg', ['-y', ...source, ...encoded, '-c:a', 'pcm_f32le', 'exact.wav'], { cwd: folder })
      const [ours, exact] = await Promise.all(
        [`${count}-${name}`, 'exact.wav'].map(async (file) => collect(toStereo(await openAudio(join(folder, file))))),
      )
      for (const side of [0, 1])
        expect(signalToNoise(exact![side]!, ours![side]!), `${layout}, side ${side}`).toBeGreaterThan(20)
    }
  })
})

/** Files made by other programs from a file of ffmpeg's, with the same samples. */
const madeByOthers: readonly (readonly [program: string, args: string[], source: string])[] = [
  ['sox', ['s16.wav', '-B', 'sox-rifx.wav'], 's16.wav'],
  ['sox', ['s16.wav', 'sox.aifc'], 's16.wav'],
  ['sox', ['s8.aiff', 'sox-8-bit.aiff'], 's8.aiff'],
  ['sox', ['s24.wav', 'sox.au'], 's24.wav'],
  ['sox', ['s16.wav', 'sox.w64'], 's16.wav'],
  ['sox', ['s16.wav', 'sox.caf'], 's16.wav'],
  ['flac', ['--silent', '-8', '-o', 'flac-32-bit.flac', 's32.wav'], 's32.wav'],
  ['flac', ['--silent', '-0', '--ogg', '-o', 'flac.oga', 's24.wav'], 's24.wav'],
]

describe.skipIf(!hasFfmpeg || !hasProgram('sox') || !hasProgram('flac'))('files of other programs', () => {
  it.each(madeByOthers)('%s %j', async (program, args, source) => {
    await runProgram(program, args, { cwd: folder })
    const file = args.find((name) => /^(sox|flac)[^ ]*\./.test(name)) ?? ''
    const { channels } = await readAudio(join(folder, file))
    const expected = await readAudio(join(folder, source))
    expect(channels.map((plane, index) => maxDifference(plane, expected.channels[index]!))).toEqual([0, 0])
  })
})
