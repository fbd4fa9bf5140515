import { mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { rendered } from '../audio/rendered-piece.js'
import { readAudio, writeWav } from '../separation/tracks.js'
import { command, startService, Stemwork, stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()
beforeAll(async () => {
  // A tone of -20 dBFS in both channels measures -20 LUFS.
  const tone = Float32Array.from({ length: 48_000 }, (_, i) => 0.1 * Math.sin((2 * Math.PI * 1000 * i) / 48_000))
  await writeWav(join(folder, 'song.wav'), [tone, tone], 48_000)
})

test('stemwork loudness prints the figures, writes at a loudness beside the file, and a picture', async () => {
  const plain = await stemwork(['loudness', 'song.wav'], folder)
  expect(plain.status, plain.stderr).toBe(0)
  expect(plain.stdout).toMatch(/^Integrated {6}-20\.0 LUFS\nRange {11}-\n/)
  expect(await readdir(folder)).toEqual(['song.wav'])

  const args = ['loudness', 'song.wav', '--normalize', '-14', '--ceiling', '-1', '--picture', 'song.svg', '--json']
  const { status, stdout, stderr } = await command(args, folder)
  expect(status, stderr).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    integratedLufs: expect.closeTo(-20, 1),
    gainDb: expect.closeTo(6, 1),
    outputs: { picture: 'song.svg' },
  })
  expect((await readdir(folder)).sort()).toEqual(['song (-14 LUFS).wav', 'song.svg', 'song.wav'])
  const { channels } = await readAudio(join(folder, 'song (-14 LUFS).wav'))
  expect(Math.max(...channels[0]!)).toBeCloseTo(0.2, 2)
})

test('stemwork transcode writes what the ending and the options say, and refuses what makes no sense', async () => {
  const args = [
    'transcode',
    'song.wav',
    'out.flac',
    '--rate',
    '24000',
    '--channels',
    '1',
    '--bits',
    '24',
    '--start',
    '0.25',
  ]
  const { status, stdout, stderr } = await command([...args, '--fade-out', '.1', '--gain', '-6'], folder)
  expect(status, stderr).toBe(0)
  expect(stdout).toBe('out.flac: 0.75 s, 24000 Hz, mono\n')
  const { sampleRate, channels } = await readAudio(join(folder, 'out.flac'))
  expect([sampleRate, channels.length, channels[0]!.length]).toEqual([24_000, 1, 18_000])

  await writeFile(join(folder, 'letter.mp3'), 'Dear listener,')
  await mkdir(join(folder, 'folder.wav'))
  for (const [given, message, code] of [
    [['song.wav', 'out.ogv'], 'must end with .wav, .flac', 2],
    [['song.wav', 'out.flac', '--bits', '32'], '--bits of .flac is one of 16, 24', 2],
    [['song.wav', 'out.aiff', '--bits', '8'], '--bits of .aiff is one of 16, 24, 32', 2],
    [['song.wav', 'out.wav', '--gain', 'loud'], '--gain must be a number such as 1.5, not "loud"', 2],
    [['song.wav', 'out.wav', '--gain', '0x10'], '--gain must be a number', 2],
    [['song.wav', 'out.wav', '--gain', '+1e3'], '--gain: must be at most 60.', 2],
    [['song.wav', 'out.wav', '--length', '0'], '--length: must be more than 0.', 2],
    [['song.wav', 'out.wav', '--start', '1e9'], '--start: must be at most 1000000.', 2],
    [['song.wav', 'out.wav', '--start', '1e5'], 'No audio is left. Choose a start before the end', 1],
    [
      ['song.wav', 'out.mp3', '--rate', '96000'],
      '--rate: MP3 has no rate of 96000 Hz: expected one of 44100, 48000, 32000',
      2,
    ],
    [['song.wav', 'out.wav', '--tempo', '9'], '--tempo: must be at most 2.', 2],
    [['song.wav', 'folder.wav'], 'The output "folder.wav" is a folder. Name a file.', 2],
    [['song.wav', './song.wav'], 'The output "./song.wav" is the input file.', 2],
    [['none.wav', 'out.wav'], 'There is no file "none.wav".', 1],
    [['song.wav', 'nowhere/out.wav'], `There is no ${join(await realpath(folder), 'nowhere')}. Check the path.`, 1],
    [['letter.mp3', 'out.wav'], 'audio', 1],
  ] as const) {
    const refused = await command(['transcode', ...given], folder)
    expect(refused.stderr).toContain(message)
    expect(refused.status).toBe(code)
  }
  expect((await readdir(folder)).filter((name) => name.startsWith('.'))).toEqual([])
})

test.each([
  [['--ceiling', '-2'], '--ceiling is for the audio that --normalize writes'],
  [['-o', 'out.wav'], '--output is for the audio that --normalize writes'],
  [['--picture', 'picture.png'], 'The name of the picture must end with .svg, not "picture.png".'],
  [['--normalize', '3'], '--normalize: must be at most 0.'],
  [['--normalize', '-14', '--ceiling', '3'], '--ceiling: must be at most 0.'],
  [['--normalize', '-14', '-o', 'song.wav'], 'The output "song.wav" is the input file.'],
])('stemwork loudness refuses %j and writes nothing', async (options, message) => {
  const before = await readdir(folder)
  const { status, stdout, stderr } = await command(['loudness', 'song.wav', ...options], folder)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toContain(message)
  expect(await readdir(folder)).toEqual(before)
})

test('stemwork analyze prints what it finds, and writes peaks and labels', async () => {
  const { audio } = rendered({ bpm: 120, key: 'C major', beatsPerBar: 4, bars: 6 })
  await writeWav(join(folder, 'piece.wav'), [audio], 22_050)
  const files = ['--peaks', 'piece.json', '--chords', 'chords.txt', '--sections', 'sections.txt']
  const { status, stdout, stderr } = await command(['analyze', 'piece.wav', ...files], folder)
  expect(status, stderr).toBe(0)
  expect(stdout).toMatch(/^Length {10}14 s$/m)
  expect(stdout).toMatch(/^Tempo {11}120\.0 bpm \(confidence 0\.\d\d\), or 60\.0 \(0\.\d\d\), \d+ beats$/m)
  expect(stdout).toMatch(/^Key {13}C major /m)
  expect(stdout).toMatch(/^Chords {10}N C F G C F N$/m)
  expect(stdout).toMatch(/^Sections {8}A$/m)
  expect(stdout).toMatch(/^Silence {9}0\.0-1\.0 s, 13\.0-14\.0 s$/m)
  expect(await readFile(join(folder, 'chords.txt'), 'utf8')).toMatch(/^0\.000000\t\d\.\d{6}\tN\n.*\tC\n/s)
  expect(await readFile(join(folder, 'sections.txt'), 'utf8')).toBe('0.000000\t14.000000\tA\n')
  expect(JSON.parse(await readFile(join(folder, 'piece.json'), 'utf8'))).toMatchObject({
    version: 2,
    sample_rate: 22_050,
  })
})

test('stemwork analyze refuses to write two results into one file', async () => {
  const args = ['analyze', 'song.wav', '--chords', 'labels.txt', '--sections', './labels.txt']
  expect(await command(args, folder)).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringContaining('Each result needs a file of its own, but two go to "./labels.txt".'),
  })
})

test('stemwork analyze names a folder that is not there before it writes anything', async () => {
  const before = await readdir(folder)
  const args = ['analyze', 'song.wav', '--peaks', 'first.json', '--chords', 'nowhere/chords.txt']
  const { status, stderr } = await command(args, folder)
  expect(status).toBe(1)
  expect(stderr).toContain(`There is no ${join(await realpath(folder), 'nowhere')}. Check the path.`)
  expect(await readdir(folder)).toEqual(before)
})

test('stemwork transcode writes the whole file although nobody reads what it says', async () => {
  const run = new Stemwork(['transcode', 'song.wav', 'unheard.wav'], folder)
  run.child.stderr?.destroy()
  expect((await run.finished()).status).toBe(0)
  expect((await readAudio(join(folder, 'unheard.wav'))).channels[0]).toHaveLength(48_000)
  expect((await readdir(folder)).filter((name) => name.startsWith('.'))).toEqual([])
})

test('a second signal ends a command at once, and its unfinished files are removed all the same', async () => {
  const unfinished = async () => (await readdir(folder)).filter((name) => name.startsWith('.'))
  const run = new Stemwork(['transcode', 'song.wav', 'stopped.wav'], folder)
  while ((await unfinished()).length === 0) await delay(1)
  run.kill('SIGINT')
  run.kill('SIGTERM')
  // The system delivers the two signals in any order.
  expect([130, 143]).toContain((await run.finished()).status)
  expect(await unfinished()).toEqual([])
  expect(await readdir(folder)).not.toContain('stopped.wav')
})

test('stemwork notes writes a MIDI file beside the song, and says which option is wrong', async () => {
  const { status, stdout, stderr } = await command(['notes', 'song.wav', '--tempo', '100'], folder)
  expect(status, stderr).toBe(0)
  expect(stdout).toMatch(/^song\.mid: \d+ notes in \d+\.\d s, 100\.0 bpm\n$/)
  expect((await readFile(join(folder, 'song.mid'))).toString('latin1', 0, 4)).toBe('MThd')
  const refused = await command(['notes', 'song.wav', '--onset', '2'], folder)
  expect(refused).toMatchObject({ status: 2, stdout: '', stderr: expect.stringMatching(/--onset.*0\.95/) })
})

test('stemwork practice writes its files into a folder, and says which option is wrong', async () => {
  const { audio } = rendered({ bpm: 120, key: 'C major', beatsPerBar: 4, bars: 4 })
  await writeWav(join(folder, 'band.wav'), [audio], 22_050)
  await writeFile(join(folder, 'words.txt'), 'La la la\n')
  const args = ['practice', 'band.wav', '--guide', '-12', '--lyrics', 'words.txt', '--format', 'flac']
  const { status, stderr } = await command(args, folder)
  expect(status, stderr).toBe(0)
  const files = await readdir(join(folder, 'band-practice'))
  expect(files).toEqual(expect.arrayContaining(['accompaniments.flac', 'analysis.json', 'click.wav', 'guide.flac']))
  const refused = await command(['practice', 'band.wav', '--guide', '3'], folder)
  expect(refused).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringContaining('--guide: must be at most 0'),
  })
  const missing = await command(['practice', 'band.wav', '--lyrics', 'none.txt'], folder)
  expect(missing).toMatchObject({ status: 1, stderr: expect.stringContaining('There is no file "none.txt".') })
})

test('stemwork analyze gives the length of a tenth of a second, and says what it cannot find', async () => {
  await writeWav(join(folder, 'click.wav'), [new Float32Array(2205)], 22_050)
  const { status, stdout } = await command(['analyze', 'click.wav'], folder)
  expect([status, stdout]).toEqual([
    0,
    expect.stringMatching(/^Length {10}0\.10 s\nTempo {11}-\nBars {12}-\nKey {13}-\nChords {10}-\nSections {8}-\n/),
  ])
})

test('stemwork serve offers them, and compositions of a JSON file', async () => {
  const composition = {
    id: 'service/quiet-flac',
    name: 'Quiet FLAC',
    description: 'A quiet copy, and its loudness.',
    steps: {
      copy: { workflow: 'service/transcode', params: { format: 'flac', gainDb: -6 } },
      measure: { workflow: 'service/loudness', inputs: { inputUrl: 'copy.audio' } },
    },
    outputs: { copy: 'copy.audio', loudness: 'measure.report' },
  }
  await writeFile(join(folder, 'composed.json'), JSON.stringify(composition))
  const key = 'a-key-of-the-tests'
  const { process, baseUrl } = await startService(['--api-keys', key, '--workflows', join(folder, 'composed.json')])
  const answer = await fetch(`${baseUrl}/workflow`, { headers: { authorization: key } })
  const { workflows } = (await answer.json()) as { workflows: { id: string }[] }
  process.kill('SIGINT')
  await process.finished()
  expect(workflows.map(({ id }) => id)).toEqual([
    'service/stems-vocals-accompaniment',
    'service/loudness',
    'service/transcode',
    'service/analyze',
    'service/notes',
    'service/practice',
    'service/quiet-flac',
  ])
})
