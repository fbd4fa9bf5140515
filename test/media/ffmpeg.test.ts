import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startFfmpeg } from '../../src/core/media/decode/ffmpeg/ffmpeg-process.js'
import { openFfmpeg } from '../../src/core/media/decode/ffmpeg/ffmpeg-stream.js'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { separate } from '../../src/core/workflows/separation/separate.js'
import { hasProgram, runProgram } from './programs.js'
import { fixture } from './test-signal.js'
import { collect, noise, writeWav } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const decoders = { ffmpeg: true }
const folder = temporaryFolder()

async function file(bytes: Uint8Array | string, name = 'file'): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, bytes)
  return path
}

/** Running child processes of this process, where the system lists them. */
function children(): string[] {
  return readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean)
}

describe.skipIf(!hasProgram('ffmpeg'))('ffmpeg, where it is allowed,', () => {
  it('decodes what the package cannot, for a complete separation', async () => {
    const outputs = { vocals: join(folder, 'vocals.wav'), accompaniments: join(folder, 'accompaniments.wav') }
    const video = fixture('refused-video.wmv')
    await expect(separate(video, { outputs })).rejects.toMatchObject({ reason: 'unsupported_format' })
    const { seconds, warnings } = await separate(video, { outputs, decoders })
    expect(seconds).toBeCloseTo(1, 0)
    expect(warnings).toEqual([])
  })

  it('is not used for what the package decodes itself', async () => {
    const stream = await openAudio(fixture('stereo.flac'), { decoders: { ffmpeg: '/no/such/program' } })
    expect(await collect(stream)).toHaveLength(2)
  })

  it('refuses what is too long before it is decoded', async () => {
    await expect(openAudio(fixture('video.ts'), { decoders, maxSeconds: 0.5 })).rejects.toMatchObject({
      reason: 'too_long',
    })
  })

  it('says that a video has no sound', async () => {
    await runProgram('ffmpeg', [
      '-v',
      'error',
      '-i',
      fixture('no-sound.mp4'),
      '-c:v',
      'flv1',
      join(folder, 'no-sound.flv'),
    ])
    await expect(openAudio(join(folder, 'no-sound.flv'), { decoders })).rejects.toMatchObject({ reason: 'no_audio' })
  })

  it('reports damage', async () => {
    const bytes = Buffer.from(await readFile(fixture('video.ts')))
    for (let at = 6000; at < 9000; at++) bytes[at]! ^= 0x3c
    const stream = await openAudio(await file(bytes), { decoders })
    await collect(stream)
    expect(stream.warnings).toEqual([
      expect.stringMatching(/^ffmpeg found the file damaged; complaints: \d+, the first: \w/),
    ])
    expect(stream.warnings?.join()).not.toContain(folder)
  })

  it.each([
    ['cannot be started', '/no/such/program', 'MISSING_DEPENDENCY', /could not be started .*decoders\.ffmpeg/],
    ['gives nothing', process.execPath, 'BAD_INPUT', /ffmpeg could not decode it/],
  ])('that %s ends the job with a message', async (_, program, code, message) => {
    await expect(openAudio(fixture('video.ts'), { decoders: { ffmpeg: program } })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
  })

  it('waits while its output is not read, and is gone when the stream is abandoned or aborted', async () => {
    const path = join(folder, 'long.wav')
    await writeWav(path, [noise(44_100 * 60)], 44_100)
    const options = { program: 'ffmpeg', demuxer: 'wav', format: 'wav', maxSeconds: Infinity }
    const before = children().length

    const iterator = (await openFfmpeg(path, options)).blocks[Symbol.asyncIterator]()
    await iterator.next()
    expect(children()).toHaveLength(before + 1)
    await iterator.return?.()
    expect(children()).toHaveLength(before)

    const abort = new AbortController()
    const aborted = (await openFfmpeg(path, { ...options, signal: abort.signal })).blocks[Symbol.asyncIterator]()
    await aborted.next()
    abort.abort(new Error('enough'))
    await expect(
      (async () => {
        while (!(await aborted.next()).done);
      })(),
    ).rejects.toThrow('enough')
    expect(children()).toHaveLength(before)
  })
})

describe.skipIf(!hasProgram('ffmpeg'))('a file that refers to others', () => {
  it.each<[string, (url: string, other: string) => string]>([
    ['an HLS playlist', (url) => `#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n${url}\n#EXT-X-ENDLIST\n`],
    [
      'an HLS playlist of files',
      (_, other) => `#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n${other}\n#EXT-X-ENDLIST\n`,
    ],
    ['a concat script', (_, other) => `ffconcat version 1.0\nfile '${other}'\n`],
    ['a DASH manifest', (url) => `<?xml version="1.0"?><MPD><Period><BaseURL>${url}</BaseURL></Period></MPD>`],
    [
      'a session description',
      (url) => `v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 ${new URL(url).hostname}\nm=audio 5004 RTP/AVP 0\n`,
    ],
  ])('%s is refused, and read by no demuxer of ours', async (_, text) => {
    let requests = 0
    const server = createServer((_request, response) => {
      requests++
      response.end()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    try {
      const { port } = server.address() as AddressInfo
      const path = await file(text(`http://127.0.0.1:${port}/a.ts`, fixture('video.ts')), 'list.m3u8')
      await expect(openAudio(path, { decoders })).rejects.toMatchObject({ reason: 'unsupported_format' })
      for (const demuxer of ['mpegts', 'mov', 'matroska', 'asf', 'ogg']) {
        const forced = openFfmpeg(path, { program: 'ffmpeg', demuxer, format: demuxer, maxSeconds: Infinity })
        await expect(forced).rejects.toMatchObject({ code: 'BAD_INPUT' })
      }
      expect(requests).toBe(0)
    } finally {
      server.close()
    }
  })
})

describe('the process', () => {
  it('that outputs nothing for too long is killed', async () => {
    const limits = { silenceMs: 50, maxBytes: 2 ** 30 }
    const slow = await startFfmpeg(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { limits })
    for await (const _ of slow.output) expect.unreachable()
    expect(await slow.ending()).toBe('it produced no output for 0.05 seconds')
  })

  it.skipIf(process.platform !== 'linux')('that takes too much memory is killed', async () => {
    const limits = { silenceMs: 60_000, maxBytes: 200 * 2 ** 20 }
    const greedy = 'const all = []; setInterval(() => all.push(Buffer.alloc(2 ** 25, 1)), 20)'
    const large = await startFfmpeg(process.execPath, ['-e', greedy], { limits })
    for await (const _ of large.output) expect.unreachable()
    expect(await large.ending()).toBe('it took more than 200 MiB of memory')
  })

  it('sees nothing of the environment except the path', async () => {
    process.env.STEMWORK_SECRET_OF_TEST = 'secret'
    const print = await startFfmpeg(
      process.execPath,
      ['-e', 'process.stdout.write(Object.keys(process.env).join())'],
      {},
    )
    const parts: Buffer[] = []
    for await (const part of print.output) parts.push(part)
    delete process.env.STEMWORK_SECRET_OF_TEST
    expect(Buffer.concat(parts).toString().split(',').sort()).toEqual(['AV_LOG_FORCE_NOCOLOR', 'LC_ALL', 'PATH'])
  })
})
