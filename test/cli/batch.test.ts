import { spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type BatchInput, GrowingFiles } from '../../src/cli/files/batch-inputs.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { encodePng } from '../../src/core/media/pictures/png.js'
import type { AudioTags } from '../../src/core/media/tags/audio-tags.js'
import { hasProgram } from '../media/programs.js'
import { noise } from '../separation/tracks.js'
import { command, Stemwork, stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

let songs: string
let out: string
let turn = 0
beforeEach(async () => {
  songs = join(folder, `songs-${++turn}`)
  out = join(folder, `out-${turn}`)
  await mkdir(join(songs, 'live'), { recursive: true })
})

const picture = { width: 4, height: 2, opacity: new Uint8Array(8).fill(128), colour: [9, 99, 199] as const }
const cover = { contentType: 'image/png', bytes: Uint8Array.from(encodePng(picture)) } as const

/** Half a second of noise. */
async function song(path: string, tags?: AudioTags): Promise<void> {
  const encoder = await openEncoder(path, { sampleRate: 44_100, channels: 2, format: 'flac', tags })
  await encoder.write([noise(22_050, ++turn), noise(22_050, -turn)])
  await encoder.close()
}

interface JsonLine {
  input: string
  status: 'done' | 'skipped' | 'failed'
  outputs: Record<string, string>
  error?: { code: string; message: string }
}

async function separate(...args: string[]) {
  const { status, stdout, stderr } = await command(['separate', songs, '-o', out, '--json', ...args], folder)
  const lines = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as JsonLine)
  const names = (wanted: JsonLine['status']) => lines.filter(({ status }) => status === wanted).length
  return { status, stderr, lines, counts: [names('done'), names('skipped'), names('failed')] }
}

/**
 * Makes the process send itself a signal when its first song is done, and only then, because a second Ctrl-C ends it at
 * once. Sent from outside, the signal might be late on a busy machine.
 */
function endingAtFirstResult(signal: NodeJS.Signals): Record<string, string> {
  const code = `const write = process.stderr.write
let isSent = false
process.stderr.write = function (text, ...rest) {
  if (!isSent && String(text).includes(': done in')) {
    isSent = true
    process.kill(process.pid, '${signal}')
  }
  return write.call(this, text, ...rest)
}`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

async function filesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
    .filter((name) => !name.startsWith('.stemwork'))
    .sort()
}

async function finishedInputs(): Promise<string[]> {
  const text = await readFile(join(out, '.stemwork/journal.jsonl'), 'utf8')
  const lines = text.split('\n').filter((line) => line.includes('"state":"finished"'))
  return lines.map((line) => (JSON.parse(line) as { input: string }).input).sort()
}

describe('separating a folder', () => {
  it('continues after kill -9 and after Ctrl-C: no song is done twice, and no file is incomplete', async () => {
    for (let index = 0; index < 6; index++) await song(join(songs, `song ${index}.flac`))
    const args = ['separate', songs, '-o', out, '--jobs', '2', '--format', 'flac']
    for (const [signal, status] of [
      ['SIGKILL', null],
      ['SIGINT', 130],
    ] as const) {
      const run = new Stemwork(args, folder, endingAtFirstResult(signal))
      const ended = await run.finished()
      expect(ended.status).toBe(status)
      if (signal === 'SIGINT') expect(ended.stderr).toContain('Run the same command to continue.')
    }
    const before = await finishedInputs()
    expect(before.length).toBeGreaterThanOrEqual(1)
    expect(before.length).toBeLessThan(6)
    // An unfinished song may have left one of its files.
    const isFinished = (name: string) => before.some((input) => input.endsWith(`/${name.split(' - ')[0]}.flac`))
    const inodesOf = (names: string[]) =>
      Promise.all(names.filter(isFinished).map(async (name) => (await stat(join(out, name))).ino))
    const inodes = await inodesOf(await filesIn(out))
    expect(inodes.length).toBe(2 * before.length)

    const { status, stdout, stderr } = await stemwork(args)
    expect(status, stderr).toBe(0)
    expect(stdout).toContain(`${6 - before.length} separated, ${before.length} already done, 0 failed.`)
    const inputs = Array.from({ length: 6 }, (_, index) => `../${songs.slice(folder.length + 1)}/song ${index}.flac`)
    expect(await finishedInputs()).toEqual(inputs)
    const results = await filesIn(out)
    expect(results).toEqual(
      Array.from({ length: 6 }, (_, index) => [
        `song ${index} - accompaniments.flac`,
        `song ${index} - vocals.flac`,
      ]).flat(),
    )
    expect(await inodesOf(results)).toEqual(inodes)
    expect(await readdir(join(out, '.stemwork'))).toEqual(expect.not.arrayContaining([expect.stringMatching(/^work/)]))
    if (!hasProgram('flac')) return
    for (const name of results) expect(spawnSync('flac', ['-s', '-t', join(out, name)]).status).toBe(0)
  })

  it('names results by a template, numbers equal ones, continues after a failure and lists it at the end', async () => {
    const tags = { title: 'One/Two', artist: 'AC/DC' }
    await song(join(songs, 'a.flac'), tags)
    await song(join(songs, 'live', 'b.flac'), { ...tags, title: 'ONE/TWO' })
    await song(join(songs, '.hidden.flac'))
    await writeFile(join(songs, 'bad.mp3'), 'Dear listener,')
    await writeFile(join(songs, 'notes.txt'), 'no song')
    const { status, stdout, stderr } = await command(
      ['separate', songs, '-o', out, '--name', '{artist}/{title} - {stem}', '--format', 'flac'],
      folder,
    )
    expect(await filesIn(out)).toEqual([
      'AC_DC/ONE_TWO - accompaniments (2).flac',
      'AC_DC/ONE_TWO - vocals (2).flac',
      'AC_DC/One_Two - accompaniments.flac',
      'AC_DC/One_Two - vocals.flac',
    ])
    expect(status).toBe(1)
    expect(stdout).toContain(`${join(out, 'AC_DC/One_Two - vocals.flac')}\n`)
    expect(stdout).toContain('2 separated, 0 already done, 1 failed.')
    expect(stderr.slice(stderr.indexOf('\nFailed:\n'))).toMatch(/^\nFailed:\n {2}\S+bad\.mp3: .*audio.*\n$/)
  })

  it('names results so that files of the same name can be told apart', async () => {
    for (const name of ['x.flac', 'x.wav', 'live/x.flac', 'solo.flac']) await song(join(songs, name))
    expect((await separate('--stems', 'vocals')).counts).toEqual([4, 0, 0])
    expect(await filesIn(out)).toEqual([
      'live/x - vocals.wav',
      'solo - vocals.wav',
      'x.flac - vocals.wav',
      'x.wav - vocals.wav',
    ])
  })

  it.skipIf(!hasProgram('ffprobe'))(
    'keeps the tags and the cover that ffprobe shows (skipped without it)',
    async () => {
      const tags = {
        title: 'Ænima',
        artist: 'Sigur Rós',
        album: 'Live',
        track: '3/12',
        date: '1991',
        genre: 'Rock',
        cover,
      }
      await song(join(songs, 'a.flac'), tags)
      expect((await separate('--format', 'flac')).status).toBe(0)
      const given = probe(join(songs, 'a.flac'))
      for (const name of await filesIn(out)) {
        const [, stem] = / - (\w+)\./.exec(name)!
        const { tags: found, pictures } = probe(join(out, name))
        expect(found).toMatchObject({ ...given.tags, title: `${stem} (stems of Ænima)` })
        expect(pictures).toEqual(given.pictures)
      }
    },
  )

  it('does a song again if its file, results or options have changed, and overwrites only its own files', async () => {
    for (const name of ['a', 'b', 'c']) await song(join(songs, `${name}.flac`))
    expect((await separate()).counts).toEqual([3, 0, 0])
    // Only the modification time differs.
    await utimes(join(songs, 'a.flac'), 1_000_000, 1_000_000)
    await song(join(songs, 'b.flac'))
    await writeFile(join(out, 'c - vocals.wav'), 'half')
    const again = await separate()
    expect(again.lines.map(({ input, status }) => `${input.at(-6)} ${status}`).sort()).toEqual([
      'a skipped',
      'b done',
      'c done',
    ])
    await writeFile(join(out, 'a - vocals.flac'), "somebody's")
    const other = await separate('--format', 'flac')
    expect(other).toMatchObject({ status: 1, counts: [2, 0, 1] })
    expect(other.lines.find(({ status }) => status === 'failed')).toMatchObject({ error: { code: 'ALREADY_EXISTS' } })
    expect(await readFile(join(out, 'a - vocals.flac'), 'utf8')).toBe("somebody's")
  })

  it('does not take results inside the folder of the songs for songs', async () => {
    await song(join(songs, 'a.flac'))
    out = songs
    expect((await separate()).counts).toEqual([1, 0, 0])
    expect((await separate()).counts).toEqual([0, 1, 0])
  })

  it('says what is missing before it creates anything', async () => {
    const missing = await command(['separate', songs, join(songs, 'nothing.flac'), '-o', out])
    expect(missing).toMatchObject({ status: 1, stderr: expect.stringContaining('There is no file "') })
    await expect(stat(out)).rejects.toThrow('ENOENT')
    await writeFile(join(songs, 'notes.txt'), 'no song')
    const none = await command(['separate', songs, '-o', out])
    expect(none).toMatchObject({
      status: 1,
      stdout: '',
      stderr:
        `stemwork: There are no audio or video files to separate in ${songs}. Name files, or folders that ` +
        `contain them.\n`,
    })
  })

  it('refuses a pipe and a folder that cannot be made instead of waiting for ever', async () => {
    spawnSync('mkfifo', [join(songs, 'pipe.wav')])
    await song(join(songs, 'a.flac'))
    const named = [join(songs, 'a.flac'), join(songs, 'pipe.wav')]
    expect(await command(['separate', ...named, '-o', out])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('pipe.wav" is not a file.'),
    })
    expect(await command(['separate', songs, '-o', '/proc/results'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('No folder can be made at /proc/results.'),
    })
    expect(await command(['separate', songs, '-o', join(songs, 'a.flac')])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('a.flac cannot be created as a folder: a file has this name.'),
    })
  })

  it('reports a song whose name is not UTF-8, which cannot be opened', async () => {
    await writeFile(Buffer.from(join(songs, 'Bj\u00f6rk.wav'), 'latin1'), '')
    const { status, lines } = await separate()
    expect(status).toBe(1)
    expect(lines).toMatchObject([{ status: 'failed', error: { message: expect.stringContaining('not UTF-8') } }])
  })

  it('names a song without what its name would make the terminal do', async () => {
    await writeFile(join(songs, 'red\u001B[31m.wav'), '')
    const { stderr, lines } = await separate()
    expect(lines[0]).toMatchObject({ input: join(songs, 'red\u001B[31m.wav'), status: 'failed' })
    expect(stderr).toContain('red [31m.wav')
    expect(stderr).not.toContain('\u001B')
  })

  it('waits for later files with --watch, and keeps another run out of its folder', async () => {
    const run = new Stemwork(['separate', songs, '-o', out, '--watch'])
    await run.printed('stderr', /Waiting for files/)
    const second = await command(['separate', songs, '-o', out])
    expect(second).toMatchObject({ status: 1, stderr: expect.stringContaining('Another run is writing to') })
    await song(join(folder, 'late.flac'))
    await rename(join(folder, 'late.flac'), join(songs, 'live', 'late.flac'))
    await run.printed('stdout', /late - accompaniments\.wav\n/)
    run.kill('SIGINT')
    expect(await run.finished()).toMatchObject({ status: 130, stdout: expect.stringContaining('1 separated') })
    expect(await filesIn(out)).toEqual(['live/late - accompaniments.wav', 'live/late - vocals.wav'])
  })
})

describe('files that grow', () => {
  it('are taken once they no longer change, and again after a change', () => {
    const growing = new GrowingFiles()
    const look = (bytes: number, modifiedAt: number) =>
      growing.complete([{ path: '/a', bytes, modifiedAt } as BatchInput]).length
    expect([look(0, 1), look(0, 1), look(5, 2), look(9, 3), look(9, 3), look(9, 3)]).toEqual([0, 0, 0, 0, 1, 0])
    expect([look(9, 4), look(9, 4)]).toEqual([0, 1])
  })
})

function probe(path: string) {
  const args = ['-v', 'error', '-of', 'json', '-show_format', '-show_streams', path]
  const { format, streams } = JSON.parse(spawnSync('ffprobe', args, { encoding: 'utf8' }).stdout) as {
    format: { tags: Record<string, string> }
    streams: { codec_name: string; width?: number; height?: number; tags?: Record<string, string> }[]
  }
  const tags = Object.fromEntries(Object.entries(format.tags).map(([name, value]) => [name.toLowerCase(), value]))
  const pictures = streams
    .filter(({ width }) => width !== undefined)
    .map(({ codec_name, width, height }) => [codec_name, width, height])
  return { tags, pictures }
}
