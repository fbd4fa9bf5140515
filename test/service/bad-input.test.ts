import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { sine } from '../separation/tracks.js'
import { wavFile } from '../separation/wav-file.js'
import { startStemsService, type StemsService } from './stems-service.js'

const workflow = 'service/stems-vocals-accompaniment'
const fixture = (name: string) => readFile(new URL(`../fixtures/audio/${name}`, import.meta.url))

/** A 16-bit mono WAV file of a tone. */
function toneWav(seconds: number): Buffer {
  const samples = Int16Array.from(sine(Math.round(seconds * 44_100), 440, 44_100), (value) => value * 32_767)
  return wavFile({ tag: 1, bits: 16, channels: 1, data: Buffer.from(samples.buffer) })
}

/** Answers of the file server by path. */
const bodies: Record<string, () => Promise<Buffer> | Buffer> = {
  '/good.wav': () => toneWav(1),
  '/empty.wav': () => Buffer.alloc(0),
  '/text.mp3': () => Buffer.from('this is not audio\n'.repeat(200)),
  '/page.html': () => Buffer.from('<!doctype html><title>Not here</title>'.repeat(20)),
  '/list.m3u8': () => Buffer.from('#EXTM3U\n#EXTINF:10,\nhttp://127.0.0.1/secret.ts\n'),
  '/noise.wav': () => randomBytes(100_000),
  '/header-only.wav': () => toneWav(1).subarray(0, 44),
  '/no-frames.wav': () => toneWav(0),
  '/too-long.wav': () => toneWav(11),
  '/first-bytes.flac': async () => (await fixture('stereo.flac')).subarray(0, 60),
  '/first-bytes.mp3': async () => (await fixture('stereo.mp3')).subarray(0, 40),
}

const cases: { what: string; path: string; code: string; reason: string | null }[] = [
  { what: 'a missing file', path: '/nothing.wav', code: 'BAD_INPUT', reason: 'download_http_404' },
  { what: 'an empty file', path: '/empty.wav', code: 'BAD_INPUT', reason: 'no_audio' },
  { what: 'a text', path: '/text.mp3', code: 'BAD_INPUT', reason: 'unsupported_format' },
  { what: 'a web page', path: '/page.html', code: 'BAD_INPUT', reason: 'unsupported_format' },
  { what: 'a playlist', path: '/list.m3u8', code: 'BAD_INPUT', reason: 'unsupported_format' },
  { what: 'random bytes', path: '/noise.wav', code: 'BAD_INPUT', reason: 'unsupported_format' },
  { what: 'a header without samples', path: '/header-only.wav', code: 'BAD_INPUT', reason: 'decode_failed' },
  { what: 'a file of no length', path: '/no-frames.wav', code: 'BAD_INPUT', reason: 'no_audio' },
  { what: 'a file that is too long', path: '/too-long.wav', code: 'BAD_INPUT', reason: 'too_long' },
  { what: 'a file that is too large', path: '/huge.wav', code: 'BAD_INPUT', reason: 'too_large' },
  { what: 'a truncated FLAC without a frame', path: '/first-bytes.flac', code: 'BAD_INPUT', reason: 'decode_failed' },
  { what: 'a truncated MP3 without a frame', path: '/first-bytes.mp3', code: 'BAD_INPUT', reason: 'decode_failed' },
  { what: 'a connection that breaks', path: '/breaks.wav', code: 'BAD_INPUT', reason: 'download_failed' },
]

let service: StemsService
beforeAll(async () => {
  service = await startStemsService(
    async (request, response) => {
      const path = request.url ?? ''
      if (path === '/breaks.wav') {
        response.writeHead(200, { 'content-length': '100000' }).write(toneWav(0.1))
        return void setImmediate(() => response.destroy())
      }
      if (path === '/huge.wav') return void response.writeHead(200).end(Buffer.alloc(3_000_000))
      const body = bodies[path]
      if (!body) return void response.writeHead(404).end()
      response.writeHead(200, { 'content-type': 'audio/wav' }).end(await body())
    },
    { limits: { maxAudioSeconds: 10, maxFileBytes: 2_000_000 } },
  )
})
afterAll(() => service.close())

async function run(inputUrl: string): Promise<JobRecord> {
  const ended = new Promise<JobRecord>((resolve) => {
    const listener = ({ job }: { job: JobRecord }) => {
      service.engine.off('job.succeeded', listener).off('job.failed', listener)
      resolve(job)
    }
    service.engine.on('job.succeeded', listener).on('job.failed', listener)
  })
  await service.engine.submit({ app: 'app', workflow, params: { inputUrl } })
  return ended
}

describe('a bad input ends FAILED with its reason, frees its files and leaves the next job untouched', () => {
  test.each(cases)('$what', async ({ path, code, reason }) => {
    const failed = await run(service.files + path)
    expect(failed.error).toMatchObject({ code, reason })
    expect(failed.error?.message).not.toMatch(/\/tmp|node_modules|\bat \w+ \(|127\.0\.0\.1/)
    await expect.poll(() => service.scratch()).toEqual([])
    expect(await service.blobs()).toEqual([])
  })

  test('an unreachable server', async () => {
    const free = await startStemsService((_request, response) => void response.end())
    const gone = free.files
    await free.close()
    expect((await run(`${gone}/song.wav`)).error).toMatchObject({ code: 'BAD_INPUT', reason: 'download_failed' })
  })

  test.each(['http://10.0.0.1/song.wav', 'http://169.254.169.254/latest', 'http://[::1]/song.wav'])(
    'the private address %s',
    async (url) => {
      expect((await run(url)).error).toMatchObject({ code: 'BAD_INPUT', reason: 'blocked_address' })
    },
  )

  test('after all that, a good file is separated, and its stems go with the job', async () => {
    const done = await run(`${service.files}/good.wav`)
    expect(done).toMatchObject({
      status: 'SUCCEEDED',
      outputs: { vocals: { fileName: 'vocals.wav' }, accompaniments: { fileName: 'accompaniments.wav' } },
    })
    await expect.poll(() => service.scratch()).toEqual([])
    await service.engine.delete(done.id)
    expect(await service.blobs()).toEqual([])
  })
})
