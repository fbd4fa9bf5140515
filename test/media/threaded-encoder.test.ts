import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { pieceSamples } from '../../src/core/media/encode/audio-pieces.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { openThreadedEncoder } from '../../src/core/media/encode/threaded-encoder.js'
import { separate } from '../../src/core/workflows/separation/separate.js'
import { noise, writeWav } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

const settings = { sampleRate: 44_100, channels: 2 }
const loud = [noise(pieceSamples, 1), noise(pieceSamples, 2)]
const isLinux = process.platform === 'linux'

/** Files in the folder that any thread of this process has open. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(folder) ? [path] : []
    } catch {
      return []
    }
  })
}

/** Niceness of the threads of this process: the 19th field of their `stat`. */
function niceness(): Map<string, number> {
  return new Map(
    readdirSync('/proc/self/task').map((thread) => {
      const fields = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')
      return [thread, Number(fields[16])]
    }),
  )
}

describe('an encoder in a thread', () => {
  it.each(['flac', 'flac24', 'mp3', '16'] as const)('writes the same %s file as one in this thread', async (format) => {
    const planes = [noise(3 * pieceSamples + 77, 1), noise(3 * pieceSamples + 77, 2)]
    const written: unknown[] = []
    for (const [name, openOne] of [
      ['own', openEncoder],
      ['thread', openThreadedEncoder],
    ] as const) {
      const encoder = await openOne(join(folder, `${name}.${format}`), { ...settings, format })
      for (const [from, to] of [
        [0, 1000],
        [1000, 1000],
        [1000, planes[0]!.length],
      ]) {
        const lent = planes.map((plane) => plane.slice(from, to))
        await encoder.write(lent)
        // The lent planes may be reused.
        for (const plane of lent) plane.fill(NaN)
      }
      written.push(await encoder.close())
    }
    expect(written[1]).toEqual(written[0])
    const [own, thread] = await Promise.all(
      ['own', 'thread'].map((name) => readFile(join(folder, `${name}.${format}`))),
    )
    expect(thread!.equals(own!)).toBe(true)
  })

  it.skipIf(!isLinux)(
    'has a lower priority than the threads that it may keep waiting (skipped except on Linux)',
    async () => {
      const before = niceness()
      const encoder = await openThreadedEncoder(join(folder, 'nice.flac'), { ...settings, format: 'flac' })
      const added = [...niceness()].filter(([thread]) => !before.has(thread))
      await encoder.abandon()
      expect(added.filter(([, nice]) => nice === Math.min(19, getPriority() + 5))).toHaveLength(1)
      expect(getPriority()).toBe(before.get(String(process.pid)))
    },
  )

  it.skipIf(!isLinux)('makes the writer wait while the disk is blocked (skipped except on Linux)', async () => {
    const path = join(folder, 'pipe')
    spawnSync('mkfifo', [path])
    // Keeps the pipe open and reads from it only when told to; until then, 64 KiB fit into it.
    const reader = spawn('sh', ['-c', 'exec 3<"$0"; read line; cat <&3 >/dev/null', path], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const gone = once(reader, 'close')
    const encoder = await openThreadedEncoder(path, { ...settings, format: '16' })
    let written = 0
    const writing = (async () => {
      for (; written < 60; written++) await encoder.write(loud)
    })()
    // Without a limit, filling shared memory would take less time than this.
    await Promise.race([writing, delay(1000)])
    expect(written).toBeLessThan(10)
    const stalledAt = written
    reader.stdin.end('go\n')
    await writing
    expect(written).toBeGreaterThan(stalledAt)
    // The start of a pipe cannot be corrected.
    await expect(encoder.close()).rejects.toMatchObject({ code: 'ESPIPE' })
    await gone
  })

  it.skipIf(!isLinux)(
    'is gone with its file when it is abandoned with work left (skipped except on Linux)',
    async () => {
      const encoder = await openThreadedEncoder(join(folder, 'abandoned.flac'), { ...settings, format: 'flac24' })
      const writing = (async () => {
        for (let piece = 0; piece < 100; piece++) await encoder.write(loud)
      })()
      writing.catch(() => {})
      await encoder.abandon()
      await expect(writing).rejects.toThrow('abandoned')
      expect(openFiles()).toEqual([])
      await encoder.abandon()
    },
  )

  it('reports that the format does not have the sample rate', async () => {
    const opening = openThreadedEncoder(join(folder, 'low.mp3'), { ...settings, sampleRate: 22_050, format: 'mp3' })
    await expect(opening).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('22050 Hz'),
    })
  })

  it.skipIf(!isLinux)('reports that the disk is full (skipped except on Linux, for /dev/full)', async () => {
    const opening = openThreadedEncoder('/dev/full', { ...settings, format: 'flac' })
    await expect(opening).rejects.toMatchObject({ code: 'ENOSPC' })
  })

  it('reports that the file cannot be created', async () => {
    const opening = openThreadedEncoder(join(folder, 'missing', 'a.flac'), { ...settings, format: 'flac' })
    await expect(opening).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('a separation into compressed files', () => {
  it.skipIf(!isLinux)(
    'ends its encoders when it is aborted, and leaves no file (skipped except on Linux)',
    async () => {
      const input = join(folder, 'song.wav')
      await writeWav(input, [noise(1_500_000, 1), noise(1_500_000, 2)], 44_100)
      const before = readdirSync(folder)
      const controller = new AbortController()
      const outputs = { vocals: join(folder, 'v.flac'), accompaniments: join(folder, 'a.flac') }
      const { signal } = controller
      const running = separate(input, {
        outputs,
        format: 'flac',
        signal,
        onProgress: () => controller.abort(new Error('enough')),
      })
      await expect(running).rejects.toThrow('enough')
      expect(readdirSync(folder)).toEqual(before)
      expect(openFiles()).toEqual([])
    },
  )
})
