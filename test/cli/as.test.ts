import { copyFile, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { asCommand } from '../../src/cli/commands/as/as.js'
import { writeSharesModel } from '../models/shares-model.js'
import { command } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

/** The documented commands of demucs 4.0.1 and audio-separator 0.47.1, and the file trees that they write. */

const mp3 = fileURLToPath(new URL('../fixtures/audio/stereo.mp3', import.meta.url))

const root = temporaryFolder()
let folder: string
beforeAll(async () => {
  await writeSharesModel(root, 'htdemucs', { drums: 0.1, bass: 0.2, other: 0.3, vocals: 0.4 })
  await writeSharesModel(root, 'UVR-MDX-NET-Inst_HQ_3', { vocals: 0.4, accompaniments: 0.6 })
})
beforeEach(async () => {
  folder = await mkdtemp(join(root, 'run-'))
  for (const name of ['myfile.mp3', 'track with space.mp3']) await copyFile(mp3, join(folder, name))
  await mkdir(join(folder, 'my music'))
  await copyFile(mp3, join(folder, 'my music/my favorite track.mp3'))
})

/** The files that a command wrote, without its inputs. */
async function filesOf(args: string[]): Promise<string[]> {
  const { status, stderr } = await command(['as', ...args], folder)
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.any(String) })
  const all = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = all.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return paths
    .map((path) => path.slice(folder.length + 1))
    .filter((path) => !/^(myfile|track|my music)[^_]*\.mp3$/.test(path))
}

async function refusalOf(args: string[]): Promise<string> {
  const { status, stderr } = await command(['as', ...args], folder)
  expect(status).toBe(2)
  return stderr
}

describe('stemwork as demucs', () => {
  const model = () => ['-n', join(root, 'htdemucs.json')]
  const four = (track: string, extension = 'wav') =>
    ['bass', 'drums', 'other', 'vocals'].map((stem) => `separated/htdemucs/${track}/${stem}.${extension}`)

  it.each<[string, string[], () => string[]]>([
    [
      'PATH_TO_AUDIO_FILE_1 PATH_TO_AUDIO_FILE_2',
      ['myfile.mp3', 'track with space.mp3'],
      () => [...four('myfile'), ...four('track with space')],
    ],
    ['"my music/my favorite track.mp3"', ['my music/my favorite track.mp3'], () => four('my favorite track')],
    ['--mp3 --mp3-bitrate 320 PATH', ['--mp3', '--mp3-bitrate', '320', 'myfile.mp3'], () => four('myfile', 'mp3')],
    [
      '--two-stems=vocals',
      ['--two-stems=vocals', 'myfile.mp3'],
      () => ['no_vocals', 'vocals'].map((stem) => `separated/htdemucs/myfile/${stem}.wav`),
    ],
    ['-j 2', ['-j', '2', 'myfile.mp3'], () => four('myfile')],
    [
      '--flac -o out',
      ['--flac', '-o', 'out', '--shifts=1', '--overlap', '0.25', 'myfile.mp3'],
      () => four('myfile', 'flac').map((path) => path.replace('separated', 'out')),
    ],
    [
      '--filename',
      ['--filename', '{stem}/{track}-{trackext}.{ext}', '-d', 'cpu', '--float32', 'myfile.mp3'],
      () => ['bass', 'drums', 'other', 'vocals'].map((stem) => `separated/htdemucs/${stem}/myfile-mp3.wav`),
    ],
  ])('%s writes the same tree', async (_what, args, expected) => {
    expect((await filesOf(['demucs', ...args, ...model()])).sort()).toEqual(expected().sort())
  })

  it.each<[string[], string]>([
    [['-n', 'mdx_q', 'myfile.mp3'], 'The model mdx_q has no counterpart. Nearest: htdemucs.'],
    [['-n', 'htdemucs_ft', 'myfile.mp3'], 'The model htdemucs_ft has no counterpart. Nearest: htdemucs.'],
    [['--mp3', '--two-stems', 'vocals', '-n', 'mdx_extra', 'track with space.mp3'], 'Nearest: htdemucs.'],
    [['--two-stems', 'drums', 'myfile.mp3'], 'Nearest: --two-stems vocals, or no --two-stems, which writes drums'],
    [['--shifts', '10', 'myfile.mp3'], '--shifts 10 has no counterpart. Nearest: the song is separated once.'],
    [['--mp3-bitrate', '128', 'myfile.mp3'], '--mp3-bitrate 128 has no counterpart. Nearest: MP3 has 320 kbit/s here'],
    [['--no-split', 'myfile.mp3'], '--no-split has no counterpart. Nearest: memory does not grow'],
    [['--clip-mode', 'rescale', 'myfile.mp3'], '--clip-mode clamp, or --float32'],
    [['-d', 'tpu', 'myfile.mp3'], '--device takes cpu, cuda, mps here, not "tpu".'],
    [['--filename', '{artist}.{ext}', 'myfile.mp3'], 'knows {track}, {trackext}, {stem} and {ext}, not {artist}.'],
    [['--two-stem', 'vocals', 'myfile.mp3'], 'Unknown option --two-stem. Did you mean --two-stems?'],
  ])('%o is refused with the nearest', async (args, message) => {
    expect(await refusalOf(['demucs', ...args])).toContain(message)
  })

  it('goes on after a file that cannot be read, and names it at the end', async () => {
    await writeFile(join(folder, 'a text.mp3'), 'This is no music. ')
    const files = ['myfile.mp3', 'a text.mp3', 'track with space.mp3']
    const { status, stdout, stderr } = await command(['as', 'demucs', ...files, ...model()], folder)
    expect(status).toBe(1)
    expect(stdout.trim().split('\n').sort()).toEqual([...four('myfile'), ...four('track with space')])
    expect(stderr).toMatch(/1 of 3 files failed:\n {2}a text\.mp3: The file is a text file/)
  })

  it.each([['{track}.{ext}'], ['{stem}.{ext}']])('refuses two results in one file: --filename %s', async (pattern) => {
    const args = ['demucs', '--filename', pattern, ...model(), 'myfile.mp3', 'track with space.mp3']
    expect(await refusalOf(args)).toMatch(/Two results would be written to separated\/htdemucs\/\w+\.wav\./)
    expect(await readdir(folder)).not.toContain('separated')
  })

  it('says how to get the default model of that program', async () => {
    const before = process.env.STEMWORK_MODELS
    process.env.STEMWORK_MODELS = join(root, 'no-models')
    try {
      const { status, stderr } = await command(['as', 'demucs', 'myfile.mp3'], folder)
      expect([status, stderr]).toEqual([1, expect.stringContaining('stemwork models pull htdemucs')])
    } finally {
      if (before === undefined) delete process.env.STEMWORK_MODELS
      else process.env.STEMWORK_MODELS = before
    }
  })
})

describe('stemwork as audio-separator', () => {
  const model = () => ['-m', join(root, 'UVR-MDX-NET-Inst_HQ_3.json')]
  const file = (stem: string, extension: string, track = 'myfile') =>
    `${track}_(${stem})_UVR-MDX-NET-Inst_HQ_3.${extension}`

  it.each<[string, string[], () => string[]]>([
    ['path/to/audio.wav', ['myfile.mp3'], () => [file('Instrumental', 'flac'), file('Vocals', 'flac')]],
    [
      '--output_format=MP3 --output_bitrate=320k',
      ['myfile.mp3', '--output_format=MP3', '--output_bitrate=320k'],
      () => [file('Instrumental', 'mp3'), file('Vocals', 'mp3')],
    ],
    [
      '--output_dir',
      ['myfile.mp3', '--output_dir=out', '--output_format', 'wav'],
      () => [`out/${file('Instrumental', 'wav')}`, `out/${file('Vocals', 'wav')}`],
    ],
    ['--single_stem=Instrumental', ['myfile.mp3', '--single_stem=Instrumental'], () => [file('Instrumental', 'flac')]],
    [
      '--custom_output_names',
      ['myfile.mp3', '--custom_output_names={"Vocals": "vocals_output", "Instrumental": "rest"}'],
      () => ['rest.flac', 'vocals_output.flac'],
    ],
    [
      'a directory, --chunk_duration 600 --use_autocast',
      ['my music', '--chunk_duration', '600', '--use_autocast'],
      () => [file('Instrumental', 'flac', 'my favorite track'), file('Vocals', 'flac', 'my favorite track')],
    ],
  ])('%s writes the same files', async (_what, args, expected) => {
    expect((await filesOf(['audio-separator', ...args, ...model()])).sort()).toEqual(expected().sort())
  })

  it.each<[string[], string]>([
    [['myfile.mp3'], 'The model model_bs_roformer_ep_317_sdr_12.9755.ckpt has no counterpart. Nearest: '],
    [['myfile.mp3', '-m', 'UVR-MDX-NET-Inst_HQ_4.onnx'], 'Nearest: UVR-MDX-NET-Inst_HQ_'],
    [
      ['myfile.mp3', '-m', 'model1.ckpt', '--extra_models', 'model2.onnx'],
      'Nearest: stemwork separate --preset <name>',
    ],
    [['myfile.mp3', '--ensemble_preset', 'vocal_balanced'], '"stemwork models presets" lists them'],
    [['-l', 'x'], '--list_models has no counterpart. Nearest: stemwork models list.'],
    [['--env_info', 'x'], 'Nearest: stemwork doctor.'],
    [['myfile.mp3', '--output_format=OGG'], '--output_format takes WAV, FLAC, MP3, AIFF here, not "OGG".'],
    [
      ['myfile.mp3', '--vr_aggression=2'],
      '--vr_aggression 2 has no counterpart. Nearest: there are no VR models here.',
    ],
    [['myfile.mp3', '--mdx_overlap=0.5'], '--mdx_overlap 0.5 has no counterpart.'],
  ])('%o is refused with the nearest', async (args, message) => {
    expect(await refusalOf(['audio-separator', ...args])).toContain(message)
  })

  it('refuses a stem that the model lacks, with those that it has', async () => {
    expect(await refusalOf(['audio-separator', 'myfile.mp3', '--single_stem=Drums', ...model()])).toContain(
      'The model has no stem "Drums". It has Vocals, Instrumental.',
    )
  })
})

it('an unknown program is refused, with the one that was probably meant', async () => {
  expect(await refusalOf(['demuc', 'x'])).toContain('not "demuc". Did you mean demucs?')
})

it('every option of a table has an effect, or says that it has none', () => {
  for (const program of ['demucs', 'audio-separator'])
    expect(Object.keys(asCommand([program]).options).length).toBeGreaterThan(18)
})
