import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, readFile, realpath, stat, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { hasProgram } from '../media/programs.js'
import { fixture } from '../media/test-signal.js'
import { command, demoSong, Stemwork, stemwork, wav } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()
let mixture: Float32Array[]
let server: Server
let url: string
const song = () => join(folder, 'song.wav')
/** For tests in which the length does not matter. */
const briefSong = () => join(folder, 'brief.wav')
const part = (seconds: number) =>
  wav.toWav(
    mixture.map((plane) => plane.subarray(6 * 44_100, (6 + seconds) * 44_100)),
    44_100,
  )

beforeAll(async () => {
  mixture = (await demoSong.writeDemoSong(song())).mixture
  const short = part(2)
  await writeFile(briefSong(), part(12))
  server = createServer((_, response) => response.end(short)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/my%20song.wav?x=1`
})
afterAll(async () => {
  server.close()
})

async function copyOf(path: string): Promise<string> {
  const copy = join(folder, 'copy.wav')
  await copyFile(path, copy)
  return copy
}

describe('stemwork separate', () => {
  it('writes two stems of the same length whose sum is the mixture within rounding', async () => {
    const { status, stdout, stderr } = await stemwork(['separate', song(), '-o', join(folder, 'stems')])
    expect(status, stderr).toBe(0)
    expect(await readdir(join(folder, 'stems'))).toEqual(['accompaniments.wav', 'vocals.wav'])
    const [vocals, accompaniments] = await Promise.all(
      ['vocals', 'accompaniments'].map(async (stem) =>
        wav.fromWav(await readFile(join(folder, 'stems', `${stem}.wav`))),
      ),
    )
    expect(vocals![0]).toHaveLength(mixture[0]!.length)
    expect(accompaniments![0]).toHaveLength(mixture[0]!.length)
    let worst = 0
    mixture.forEach((plane, channel) =>
      plane.forEach(
        (sample, i) =>
          (worst = Math.max(worst, Math.abs(vocals![channel]![i]! + accompaniments![channel]![i]! - sample))),
      ),
    )
    expect(worst).toBeLessThanOrEqual(1 / 32_768)
    expect(stdout).toContain(join(folder, 'stems', 'vocals.wav'))
    expect(stdout).toMatch(/33 s of audio in .* x real time/)
    expect(stdout).toMatch(/The bundled model has basic quality\..*stemwork models pull recommended/)
    expect(stderr).toMatch(/^Separating \d+%/)
    expect(stderr).not.toContain('\r')
  })

  it.skipIf(!existsSync('/proc/self/task')).each(['one song', 'several songs'])(
    'runs the child for %s at normal priority, since the user waits for it (skipped except on Linux)',
    async (songs) => {
      const files = songs === 'one song' ? [briefSong()] : [briefSong(), await copyOf(briefSong())]
      const running = new Stemwork(['separate', ...files, '-o', join(folder, 'priority')])
      const { pid } = running.child
      const childrenOf = () => readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').then((text) => text.split(' '))
      let hasEnded = false
      const ended = running.finished().finally(() => (hasEnded = true))
      // As often as possible: on a busy machine, a child may have ended before it is inspected.
      const seen = new Set<number>()
      while (!hasEnded) {
        const children = await childrenOf().catch(() => [])
        for (const child of children.filter(Boolean)) {
          try {
            seen.add(getPriority(Number(child)))
          } catch {
            // The process has ended.
          }
        }
        await delay(5)
      }
      expect((await ended).status).toBe(0)
      expect([...seen]).toEqual([getPriority()])
    },
  )

  it("writes the song's tags into the files, and none with --no-tags", async () => {
    const tagged = join(folder, 'tagged.wav')
    const encoder = await openEncoder(tagged, {
      sampleRate: 44_100,
      channels: 2,
      format: '16',
      tags: { title: 'Ænima' },
    })
    await encoder.write(mixture.map((plane) => plane.subarray(0, 44_100)))
    await encoder.close()
    for (const [option, there] of [
      [[], true],
      [['--no-tags'], false],
    ] as const) {
      const out = join(folder, `tags-${there}`)
      const { status, stderr } = await command(['separate', tagged, '-o', out, '--format', 'flac', ...option])
      expect(status, stderr).toBe(0)
      for (const stem of ['vocals', 'accompaniments'])
        expect((await readFile(join(out, `${stem}.flac`))).includes('Ænima')).toBe(there)
    }
  })

  it('prints JSON with --json; --format 24 writes 24-bit files in a folder named like the song', async () => {
    // As macOS writes it: the accent is a separate character.
    const file = "Beyonce\u{301} & I (don't) \u{1F3B5}.wav"
    await writeFile(join(folder, file), part(2))
    const { status, stdout } = await stemwork(['separate', file, '--json', '--format', '24'], folder)
    expect(status).toBe(0)
    const report = JSON.parse(stdout)
    expect(report).toMatchObject({
      input: file,
      seconds: 2,
      outputs: { vocals: join(folder, "Beyonc\u{E9} & I (don't) \u{1F3B5}-stems", 'vocals.wav') },
      details: { sampleRate: 44_100, clippedSamples: 0 },
    })
    const headerBytes = (await stat(report.outputs.vocals)).size - 2 * 44_100 * 2 * 3
    expect(headerBytes).toBeGreaterThan(40)
    expect(headerBytes).toBeLessThan(200)
  })

  it('reads a URL inside this machine only when told to', async () => {
    const refused = await command(['separate', url, '--json'], folder)
    expect(refused.status).toBe(1)
    expect(JSON.parse(refused.stdout).error).toMatchObject({ code: 'BAD_INPUT', reason: 'blocked_address' })
    const allowed = await stemwork(['separate', url, '--allow-private-inputs'], folder)
    expect(allowed.status, allowed.stderr).toBe(0)
    expect(await readdir(join(folder, 'my song-stems'))).toEqual(['accompaniments.wav', 'vocals.wav'])
  })

  it('says why a file cannot be used, with status 1, and leaves no folder behind', async () => {
    await writeFile(join(folder, 'letter.mp3'), 'Dear listener,')
    const { status, stdout, stderr } = await command(['separate', 'letter.mp3', '-o', 'letter'], folder)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/^stemwork: .*audio/)
    expect(existsSync(join(folder, 'letter'))).toBe(false)
    const missing = await command(['separate', 'nothing.mp3'], folder)
    expect(missing).toMatchObject({
      status: 1,
      stderr:
        'stemwork: There is no file "nothing.mp3". Check the path; the current folder is ' +
        `${await realpath(folder)}.\n`,
    })
  })

  const isRoot = process.getuid?.() === 0
  it.skipIf(process.platform === 'win32' || (isRoot && !hasProgram('setpriv')))(
    'says so if it may not read a file or a folder',
    async () => {
      const locked = join(folder, 'locked.wav')
      const closed = join(folder, 'closed')
      await copyFile(briefSong(), locked)
      await mkdir(closed)
      for (const path of [locked, closed]) await chmod(path, 0)
      // Root may read everything, unless it lacks these capabilities.
      const asUser = isRoot ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []
      const main = new URL('../../dist/cli/main.js', import.meta.url).pathname
      const separate = (...args: string[]) => {
        const [program = '', ...rest] = [...asUser, process.execPath, main, 'separate', ...args]
        const { status, stderr } = spawnSync(program, rest, { encoding: 'utf8' })
        return [status, stderr]
      }
      const why = `EACCES: permission denied, access '${locked}'. Check its path and permissions.`
      expect(separate(locked)).toEqual([1, `stemwork: "${locked}" cannot be read: ${why}\n`])
      const several = separate(locked, closed, '-o', join(folder, 'none'))
      const listed = [locked, closed].map((path) => `  ${path}: This process has no permission to use ${path}. `)
      expect(several).toEqual([1, expect.stringContaining('Failed:')])
      for (const line of listed) expect(several[1]).toContain(line)
      await chmod(closed, 0o700)
    },
  )

  it('never replaces the song with one of its stems', async () => {
    const own = join(folder, 'own')
    await mkdir(own)
    await writeFile(join(own, 'vocals.wav'), 'the only copy')
    const { status, stderr } = await command(['separate', 'vocals.wav', '-o', '.'], own)
    expect([status, stderr]).toEqual([2, expect.stringContaining('vocals.wav" is the input file. Choose another name')])
    expect(await readdir(own)).toEqual(['vocals.wav'])
    expect(await readFile(join(own, 'vocals.wav'), 'utf8')).toBe('the only copy')
  })

  it.skipIf(!existsSync('/dev/full'))('says so if its output cannot be written', () => {
    const main = new URL('../../dist/cli/main.js', import.meta.url).pathname
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, [main, '--help'], { stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    expect([status, String(stderr)]).toEqual([
      1,
      expect.stringMatching(/^stemwork: The output could not be written: .*\n$/),
    ])
  })

  it('says how much of a truncated file is missing', async () => {
    const whole = await readFile(fixture('stereo.flac'))
    await writeFile(join(folder, 'cut.flac'), whole.subarray(0, Math.floor(whole.length / 2)))
    const { status, stdout } = await command(['separate', 'cut.flac'], folder)
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /^The file states a length of 1\.00 seconds, but 0\.\d\d were decoded: it was cut off or is damaged\.$/m,
    )
  })

  it.skipIf(!hasProgram('ffmpeg'))(
    'reads a Windows Media video with --ffmpeg, and recommends the option without it',
    async () => {
      const refused = await command(['separate', fixture('refused-video.wmv'), '-o', 'stream'], folder)
      expect(refused.status).toBe(1)
      expect(refused.stderr).toMatch(/^stemwork: The file is a Windows Media video \(WMV\)\. .* ffmpeg allowed/)
      const { status, stderr } = await command(
        ['separate', fixture('refused-video.wmv'), '-o', 'stream', '--ffmpeg'],
        folder,
      )
      expect(status, stderr).toBe(0)
      expect(await readdir(join(folder, 'stream'))).toEqual(['accompaniments.wav', 'vocals.wav'])
    },
  )

  it('stops at Ctrl-C with status 130 and removes unfinished files', async () => {
    const run = new Stemwork(['separate', song(), '-o', join(folder, 'stopped')])
    await run.printed('stderr', /Separating/)
    expect(await readdir(join(folder, 'stopped'))).toEqual([expect.stringMatching(/^\.unfinished-/)])
    run.kill('SIGINT')
    const { status, stdout, stderr } = await run.finished()
    expect({ status, stdout }).toEqual({ status: 130, stdout: '' })
    expect(stderr).toContain('Stopped; unfinished files were removed.')
    expect(existsSync(join(folder, 'stopped'))).toBe(false)
  })
})
