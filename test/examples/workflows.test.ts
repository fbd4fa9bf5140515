import { spawnSync } from 'node:child_process'
import { readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { localFile } from '../../src/core/engine/intake/local-file.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { testEngine, textOf } from '../engine/harness.js'
import { hasProgram, runProgram } from '../media/programs.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 120_000 })

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const folder = temporaryFolder()
afterEach(() => vi.unstubAllEnvs())

/** The workflow that `--workflows` would load. */
async function example(name: string): Promise<Workflow> {
  const { default: workflow } = (await import(here(`../../examples/workflows/${name}`))) as { default: Workflow }
  return workflow
}

/** The workflows are complete programs that should fit on a screen. */
const mostLines = 40

/** An engine that works on one job. */
async function started(workflow: Workflow, path: string, params: Record<string, unknown> = {}) {
  const { engine, parts, until } = testEngine(workflow)
  await engine.start()
  const { job } = await engine.submit({
    app: 'app',
    workflow: workflow.id,
    params,
    inputs: { inputUrl: localFile(path) },
  })
  const ended = async () => {
    const done = await until(job.id, 'SUCCEEDED', 'FAILED')
    const text = (output: string) => textOf(parts.blobs, done.outputs?.[output]?.key ?? '')
    return { done, text, path: (output: string) => outputPath(parts.blobs, done, output) }
  }
  return { engine, job, ended }
}

async function outputPath(blobs: Parameters<typeof textOf>[0], { outputs }: JobRecord, output: string) {
  const chunks: Uint8Array[] = []
  for await (const chunk of (await blobs.get(outputs?.[output]?.key ?? ''))?.body ?? []) chunks.push(chunk)
  const path = join(folder, outputs?.[output]?.fileName ?? 'none')
  await writeFile(path, Buffer.concat(chunks))
  return path
}

const probed = async (path: string, ...what: string[]) =>
  (await runProgram('ffprobe', ['-v', 'error', '-of', 'default=nw=1', ...what, path])).stdout

async function playlistOf(file: string) {
  const path = join(folder, 'playlist.m3u8')
  const head = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-VERSION:3\n'
  await writeFile(path, `${head}#EXTINF:1,\nfile://${file}\n#EXT-X-ENDLIST\n`)
  return path
}

test('each is shorter than 40 lines', async () => {
  const files = await readdir(here('../../examples/workflows'))
  expect(files.length).toBeGreaterThan(3)
  for (const file of files) {
    const text = await readFile(here(`../../examples/workflows/${file}`), 'utf8')
    expect(text.split('\n').length, file).toBeLessThanOrEqual(mostLines)
  }
})

test('thumbnails.mjs makes three sizes of a photo, none above the original, and refuses other files', async () => {
  const photo = join(folder, 'photo.png')
  const noise = { type: 'gaussian', mean: 128, sigma: 30 } as const
  await sharp({ create: { width: 800, height: 600, channels: 3, noise, background: 'black' } }).toFile(photo)
  const { engine, ended } = await started(await example('thumbnails.mjs'), photo)
  const { done, path } = await ended()
  expect(done).toMatchObject({ status: 'SUCCEEDED', error: null })
  const widths = ['small', 'medium', 'large'].map(async (size) => (await sharp(await path(size)).metadata()).width)
  expect(await Promise.all(widths)).toEqual([160, 480, 800])
  await engine.close()
  // Half of the file: its head is a valid picture's.
  await truncate(photo, 200_000)
  const broken = await started(await example('thumbnails.mjs'), photo)
  expect((await broken.ended()).done).toMatchObject({ status: 'FAILED', attempts: 1, error: { code: 'BAD_INPUT' } })
  await broken.engine.close()
})

describe.skipIf(!hasProgram('ffmpeg'))('the workflows of ffmpeg (skipped where it is not installed)', () => {
  test('ladder.mjs makes three sizes in parallel, and a playlist that names them', async () => {
    const video = join(folder, 'video.mp4')
    await runProgram('ffmpeg', ['-f', 'lavfi', '-i', 'testsrc=duration=1:size=640x480:rate=10', video])
    const { engine, ended } = await started(await example('ladder.mjs'), video)
    const { done, text, path } = await ended()
    expect(done).toMatchObject({ status: 'SUCCEEDED', error: null })
    expect(await text('playlist')).toContain('#EXTINF:-1,240p\n240p.mp4')
    expect(await probed(await path('video480'), '-show_entries', 'stream=height')).toContain('height=480')
    await engine.close()
  })

  test('podcast.mjs leaves out a long silence and marks the chapters', async () => {
    const talk = join(folder, 'talk.wav')
    const sound = 'sine=duration=2,apad=pad_dur=5,aeval=val(0)|val(0)'
    await runProgram('ffmpeg', ['-f', 'lavfi', '-i', sound, talk])
    const chapters = [
      { title: 'Begin', seconds: 0 },
      { title: 'End', seconds: 1 },
    ]
    const { engine, ended } = await started(await example('podcast.mjs'), talk, { chapters })
    const { done, path } = await ended()
    expect(done).toMatchObject({ status: 'SUCCEEDED', error: null })
    const facts = await probed(await path('episode'), '-show_chapters', '-show_entries', 'format=duration')
    expect(facts).toMatch(/Begin[\s\S]*End/)
    expect(Number(/duration=([\d.]+)/.exec(facts)?.[1])).toBeLessThan(4)
    await engine.close()
  })

  test.each(['ladder.mjs', 'podcast.mjs', 'approval.mjs'])('%s does not open what a playlist names', async (name) => {
    const other = join(folder, 'other.ts')
    await runProgram('ffmpeg', ['-y', '-f', 'lavfi', '-i', 'sine=duration=1', '-f', 'mpegts', other])
    const { engine, ended } = await started(await example(name), await playlistOf(other))
    engine.on('job.requeued', ({ job }) => engine.cancel(job.id))
    const { done } = await ended()
    expect(done).toMatchObject({ status: 'FAILED', attempts: 1, error: { code: 'BAD_INPUT' } })
    expect(done.failure).toContain('not on whitelist')
    await engine.close()
  })

  test('approval.mjs makes the whole file once the preview is approved', async () => {
    const song = join(folder, 'song.wav')
    await runProgram('ffmpeg', ['-f', 'lavfi', '-i', 'sine=duration=8', song])
    const { engine, job, ended } = await started(await example('approval.mjs'), song)
    await new Promise<void>((resolve) => engine.on('job.requeued', () => resolve()))
    const waiting = await engine.get(job.id)
    expect(waiting?.steps).toMatchObject([
      { name: 'preview', state: 'done' },
      { name: 'approval', state: 'waiting' },
    ])
    await engine.sendEvent(job.id, 'approval', { by: 'Ann' })
    const { done } = await ended()
    expect(done).toMatchObject({ status: 'SUCCEEDED', details: { approvedBy: 'Ann' } })
    await engine.close()
  })
})

describe.skipIf(!hasProgram('python3'))('transcribe.mjs (skipped where Python is not installed)', () => {
  // Whisper and its models take gigabytes, so a module of the same name replaces it. Everything else is real.
  test('tells details of any number: infinity, which JSON does not have, as null, and those of NumPy', () => {
    const lines = [
      'from stemwork_program import Job',
      'job = Job.__new__(Job)',
      'class Float32:',
      '  def tolist(self): return 0.5',
      'job.detail("loudness", {"peak": float("-inf"), "all": [float("nan"), Float32()]})',
      'job.progress(Float32())',
      'job.detail("wrong", {1, 2})',
    ]
    const { stdout, stderr } = spawnSync('python3', ['-c', lines.join('\n')], {
      encoding: 'utf8',
      // Prevents the folder that Python creates beside imported files.
      env: { ...process.env, PYTHONPATH: here('../../clients/python'), PYTHONDONTWRITEBYTECODE: '1' },
    })
    const told = stdout.split('\n').filter((line) => line !== '')
    expect(told.map((line) => JSON.parse(line) as unknown)).toEqual([
      { detail: 'loudness', value: { peak: null, all: [null, 0.5] } },
      { progress: 0.5 },
    ])
    expect(stderr).toContain('TypeError: set is not JSON: pass numbers, texts, lists or dicts')
  })

  test.skipIf(!hasProgram('ffmpeg'))('returns what it wrote, or its message (skipped without ffmpeg)', async () => {
    vi.stubEnv('PYTHONPATH', `${here('fixtures/fake-whisper')}:${here('../../clients/python')}`)
    const workflow = await example('transcribe.mjs')
    const recording = join(folder, 'recording.mp3')
    await runProgram('ffmpeg', ['-f', 'lavfi', '-i', 'sine=duration=1', recording])
    const { engine, ended } = await started(workflow, recording, { model: 'tiny' })
    const { done, text } = await ended()
    expect(done).toMatchObject({ status: 'SUCCEEDED', details: { language: 'en' } })
    expect(JSON.parse(await text('text'))).toEqual({ text: 'tiny: hello', language: 'en' })
    await engine.close()
    const silence = join(folder, 'silence.wav')
    await runProgram('ffmpeg', ['-f', 'lavfi', '-i', 'anullsrc=duration=1', '-t', '1', silence])
    for (const [file, message] of [
      [silence, 'The recording has no speech. Send one that has.'],
      // Whisper itself would pass the recording to ffmpeg.
      [await playlistOf(recording), 'The recording cannot be decoded. Send MP3, M4A, WAV, FLAC or Ogg.'],
    ] as const) {
      const refused = await started(workflow, file)
      const { done: failed } = await refused.ended()
      expect(failed).toMatchObject({ status: 'FAILED', attempts: 1, error: { code: 'BAD_INPUT', message } })
      await refused.engine.close()
    }
  })
})
