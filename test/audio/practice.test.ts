import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import type { BlobStore } from '../../src/core/engine/ports/blob-store.js'
import { localFile } from '../../src/core/engine/intake/local-file.js'
import { practiceWorkflow } from '../../src/core/workflows/practice/practice-workflow.js'
import { createEngine } from '../../src/create-engine.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import type { OutputFormat } from '../../src/core/media/encode/output-format.js'
import type { AudioTags } from '../../src/core/media/tags/audio-tags.js'
import { hasProgram } from '../media/programs.js'
import { fixture } from '../media/test-signal.js'
import { manifestOf } from '../separation/architecture-run.js'
import { shares, writeModelFolder } from '../separation/model-folder.js'
import { readAudio } from '../separation/tracks.js'
import { rendered } from './rendered-piece.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100
const { audio: band, beats, downbeats, seconds } = rendered({ bpm: 100, key: 'A minor', beatsPerBar: 4, bars: 12 })
/** Times at which the voice sings, in seconds. */
const sung = [
  [3.4, 5.6],
  [5.9, 8.2],
  [8.6, 11],
  [15.2, 17.4],
  [17.9, 20.3],
  [20.6, 22.9],
] as const
const words = ['Above the hills the evening', 'comes walking to the town', 'and sits beside the river']
const chorus = ['O river take me over,', 'O river take me home,', 'where all the lights are burning']
const lyrics = ['[Verse 1]', ...words, '', '[Chorus]', ...chorus].join('\n')
const lines = [...words, ...chorus]

const folder = temporaryFolder()
let song: string
/** A model that takes the left channel as the voice and the right one as everything else. */
let model: string
beforeAll(async () => {
  const count = Math.round(seconds * rate)
  const voice = new Float32Array(count)
  for (const [from, to] of sung)
    for (let i = Math.round(from * rate); i < to * rate; i++) {
      const t = i / rate
      const fade = Math.min(1, (t - from) / 0.03, (to - t) / 0.03)
      for (const harmonic of [1, 2, 3, 4])
        voice[i]! += ((0.12 * fade) / harmonic) * Math.sin(2 * Math.PI * 220 * harmonic * t + Math.sin(30 * t))
    }
  const others = Float32Array.from({ length: count }, (_, i) => 0.5 * (band[i >> 1]! + band[(i + 1) >> 1]!))
  song = join(folder, 'river.flac')
  const tags = { title: 'River', artist: 'The Generators' }
  const encoder = await openEncoder(song, { sampleRate: rate, channels: 2, format: 'flac24', tags })
  await encoder.write([voice, others])
  await encoder.close()
  const manifest = manifestOf('htdemucs', { stems: ['drums', 'bass', 'other', 'vocals'] })
  const graph = shares([0, 0, 0, 0, 0, 1, 1, 0], { samples: 44_100, channels: 2 })
  model = await writeModelFolder(join(folder, 'left'), manifest, graph)
})

function engineOn(blobs: BlobStore, jobs = memoryJobs()) {
  const workflow = practiceWorkflow({ model, threads: 1 })
  return createEngine({ workflows: [workflow], blobs, jobs, dispatch: { niceness: 0 }, checkpoints: { afterMs: 0 } })
}

/** Runs a job and writes its results to a folder. Returns their paths by output. */
async function practised(params: Record<string, unknown> = {}) {
  const blobs = memoryBlobs()
  const engine = engineOn(blobs)
  const submitted = { app: 'me', workflow: 'service/practice', inputs: { inputUrl: localFile(song) }, params }
  const { job: created } = await engine.submit(submitted)
  const job = await engine.run(created.id)
  expect(job?.error ?? null).toBeNull()
  const target = await mkdtemp(join(folder, 'results-'))
  const files: Record<string, string> = {}
  for (const [name, { key, fileName }] of Object.entries(job!.outputs ?? {})) {
    const chunks: Uint8Array[] = []
    for await (const chunk of (await blobs.get(key))!.body) chunks.push(chunk)
    files[name] = join(target, fileName)
    await writeFile(files[name], Buffer.concat(chunks))
  }
  await engine.close()
  return { job: job!, files }
}

function level(samples: Float32Array): number {
  return 10 * Math.log10(samples.reduce((sum, value) => sum + value * value, 0) / samples.length)
}

function difference(one: Float32Array, other: Float32Array): Float32Array {
  return one.map((value, i) => value - other[i]!)
}

async function channelsOf(path: string | undefined) {
  return (await readAudio(path ?? '')).channels
}

describe('service/practice', () => {
  let result: Awaited<ReturnType<typeof practised>>
  beforeAll(async () => void (result = await practised({ format: '24', lyrics })))

  it('writes accompaniments, guide, clicks, lyrics and the analysis, all as long as the song', async () => {
    const { job, files } = result
    expect(Object.fromEntries(Object.entries(job.outputs!).map(([name, each]) => [name, each.downloadName]))).toEqual({
      accompaniments: 'River - accompaniments.wav',
      guide: 'River - guide.wav',
      click: 'River - click.wav',
      lyrics: 'River.lrc',
      ultrastar: 'River.txt',
      analysis: undefined,
    })
    for (const name of ['accompaniments', 'guide', 'click'])
      expect((await channelsOf(files[name]))[0]).toHaveLength(Math.round(seconds * rate))
  })

  it('clicks within 20 ms of every beat, louder and higher at the start of a bar', async () => {
    const [click] = await channelsOf(result.files.click)
    const onsets: { time: number; peak: number }[] = []
    for (let i = 0; i < click!.length; i++) {
      if (click![i] === 0 || i / rate - (onsets.at(-1)?.time ?? -1) < 0.1) continue
      onsets.push({ time: i / rate, peak: Math.max(...click!.subarray(i, i + 1000)) })
    }
    const nearest = (times: number[], time: number) => Math.min(...times.map((each) => Math.abs(each - time)))
    const times = onsets.map(({ time }) => time)
    for (const beat of beats) expect(nearest(times, beat)).toBeLessThan(0.02)
    const within = onsets.filter(({ time }) => time > 0.9 && time < seconds - 1.1)
    expect(within).toHaveLength(beats.length)
    for (const { time, peak } of within) expect(peak > 0.6).toBe(nearest(downbeats, time) < 0.02)
  })

  it('has a guide of -18 dB unless a job sets another level, and accompaniments without the voice', async () => {
    const [whole, without, guide] = await Promise.all(
      [song, result.files.accompaniments, result.files.guide].map(channelsOf),
    )
    expect(level(without![0]!)).toBeLessThan(-100)
    const voice = level(difference(whole![0]!, without![0]!))
    expect(Math.abs(level(difference(guide![0]!, without![0]!)) - voice + 18)).toBeLessThan(0.1)
  })

  it.skipIf(!hasProgram('ffprobe'))('says tempo and key in tags that ffprobe reads (skipped without it)', async () => {
    const song = { artist: 'The Generators', IBPM: '100' }
    for (const name of ['accompaniments', 'guide', 'click']) {
      expect(tagsOf(result.files[name]!)).toMatchObject(song)
      expect(await id3OfWav(result.files[name]!)).toMatchObject({ TBPM: '100', TKEY: 'Am' })
    }
    const { flac, mp3, aiff, '16': wav } = await tagsByFormat({ title: 'Tagged', bpm: '100', key: 'F#m' })
    expect(wav).toEqual({ title: 'Tagged', IBPM: '100' })
    expect(flac).toEqual({ TITLE: 'Tagged', BPM: '100', INITIALKEY: 'F#m' })
    expect([mp3, aiff]).toEqual([1, 2].map(() => ({ title: 'Tagged', TBPM: '100', TKEY: 'F#m' })))
  })

  it('times the lines in order, where there is singing, verse by verse', async () => {
    const lrc = await readFile(result.files.lyrics!, 'utf8')
    const timed = [...lrc.matchAll(/^\[(\d\d):(\d\d\.\d\d)\](.+)$/gm)].map(([, minutes, rest, text]) => ({
      start: 60 * Number(minutes) + Number(rest),
      text,
    }))
    expect(timed.map(({ text }) => text)).toEqual(lines)
    for (const [index, { start }] of timed.entries()) expect(Math.abs(start - sung[index]![0])).toBeLessThan(0.1)
    expect(lrc).toMatch(/^\[ti:River\]\n\[ar:The Generators\]\n\[length:00:30\.80\]\n/)
    // The screen is empty between the verses.
    expect(lrc).toMatch(/^\[00:1[01]\.\d\d\]$/m)
  })

  it('writes the same times for UltraStar, with words in order within their lines', async () => {
    const text = await readFile(result.files.ultrastar!, 'utf8')
    const field = (name: string) => new RegExp(`^#${name}:(.*)$`, 'm').exec(text)?.[1]
    expect([field('TITLE'), field('ARTIST'), field('MP3')]).toEqual(['River', 'The Generators', 'River - guide.wav'])
    const secondsAt = (beat: number) => Number(field('GAP')) / 1000 + (beat * 15) / Number(field('BPM'))
    const sentences = text.split(/^- \d+\n/m).map((part) => [...part.matchAll(/^F (\d+) (\d+) 0 (.*)$/gm)])
    expect(sentences.map((notes) => notes.map(([, , , word]) => word).join(''))).toEqual(lines)
    expect(text.endsWith('\nE\n')).toBe(true)
    for (const [index, notes] of sentences.entries()) {
      const [from, to] = sung[index]!
      for (const [, start, length] of notes) {
        expect(secondsAt(Number(start))).toBeGreaterThan(from - 0.1)
        expect(secondsAt(Number(start) + Number(length))).toBeLessThan(to + 0.1)
      }
    }
  })

  it('refuses a guide that is louder than the song, and lyrics without end', async () => {
    const engine = engineOn(memoryBlobs())
    const submit = (params: Record<string, unknown>) =>
      engine.submit({ app: 'me', workflow: 'service/practice', inputs: { inputUrl: localFile(song) }, params })
    await expect(submit({ guideDb: 3 })).rejects.toThrow(/guideDb: must be at most 0/)
    await expect(submit({ lyrics: 'la '.repeat(7000) })).rejects.toThrow(/lyrics/)
    await engine.close()
  })

  it('separates only once, even if the worker is lost before the end', async () => {
    const [jobs, kept] = [memoryJobs(), fsBlobs({ directory: join(folder, 'blobs') })]
    const steps: string[] = []
    let stop = () => {}
    const blobs: BlobStore = {
      ...kept,
      async put(key, body, options) {
        const [, step] = /\/step-(\w+)\//.exec(key) ?? []
        if (step !== undefined) steps.push(step)
        if (step === 'analyze') stop()
        return await kept.put(key, body, options)
      },
    }
    const first = engineOn(blobs, jobs)
    const stopped = new Promise<void>((resolve) => (stop = () => resolve(first.close({ timeoutMs: 0 }))))
    const submitted = { app: 'me', workflow: 'service/practice', inputs: { inputUrl: localFile(song) } }
    const { job } = await first.submit(submitted)
    await first.start()
    await stopped
    const second = engineOn(blobs, jobs)
    const done = await second.run(job.id)
    await second.close()
    expect(done?.status).toBe('SUCCEEDED')
    expect(Object.keys(done?.outputs ?? {})).toEqual(['accompaniments', 'guide', 'click', 'analysis'])
    expect(steps.filter((step) => step === 'separate')).toHaveLength(2)
    expect(steps.filter((step) => step === 'mix')).toHaveLength(3)
  })
})

function tagsOf(path: string): Record<string, string> {
  const args = ['-v', 'error', '-show_entries', 'format_tags', '-of', 'json', path]
  const { format } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8' })) as {
    format: { tags: Record<string, string> }
  }
  return format.tags
}

async function tagsByFormat(tags: AudioTags): Promise<Partial<Record<OutputFormat, Record<string, string>>>> {
  const formats = ['16', 'flac', 'mp3', 'aiff'] as const
  const found = formats.map(async (format) => {
    const path = join(folder, `tags.${format}`)
    const encoder = await openEncoder(path, { sampleRate: rate, channels: 1, format, tags })
    await encoder.write([new Float32Array(5000)])
    await encoder.close()
    return [format, tagsOf(path)]
  })
  return Object.fromEntries(await Promise.all(found))
}

/** Fields of a WAV file's ID3 tag, read as an MP3 file's: beside other tags of WAV, ffprobe ignores it. */
async function id3OfWav(path: string): Promise<Record<string, string>> {
  const wav = await readFile(path)
  const at = wav.lastIndexOf('id3 ')
  const alone = join(folder, 'id3.mp3')
  await writeFile(alone, Buffer.concat([wav.subarray(at + 8), await readFile(fixture('mono.mp3'))]))
  return tagsOf(alone)
}
