import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageFile } from '../../src/core/engine/package-files.js'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import type { Network } from '../../src/core/models/session/network.js'
import { openSession } from '../../src/core/models/session/session.js'
import { noteActivations } from '../../src/core/workflows/notes/note-activations.js'
import { type Note, notesOf } from '../../src/core/workflows/notes/note-events.js'
import { usualNoteOptions } from '../../src/core/workflows/notes/note-options.js'
import { notesWorkflow } from '../../src/core/workflows/notes/notes-workflow.js'
import { hasProgram } from '../media/programs.js'
import { opened, orderOf, run as runOrder } from '../runner/run-order.js'
import { blocksOf, streamOf, writeWav } from '../separation/tracks.js'
import { readMidi } from './midi-reader.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100
const clip = fileURLToPath(new URL('../../../shared/models/basic-pitch/vocadito_10.wav', import.meta.url))
const hasClip = existsSync(clip)
const reference: {
  events: [start: number, end: number, pitch: number, amplitude: number, bends: number[]][]
  frames: Record<string, { note: number[]; onset: number[] }>
} = JSON.parse(await readFile(new URL('../fixtures/notes/vocadito_10.json', import.meta.url), 'utf8'))
/** Length of a frame of the note network. */
const frameSeconds = 256 / 22_050

const networks: Record<string, Network> = {}
const folder = temporaryFolder()
beforeAll(async () => {
  const path = fileURLToPath(packageFile('models/basic-pitch/nmp.onnx'))
  for (const runtime of ['native', 'wasm'] as const)
    networks[runtime] = await openSession(path, { threads: 1, runtime })
})
afterAll(async () => {
  for (const network of Object.values(networks)) await network.close()
})

/** Plucked tones with three harmonics: start and end in seconds, MIDI number. */
function plucked(notes: [from: number, to: number, pitch: number][], seconds: number): Float32Array {
  const plane = new Float32Array(seconds * rate)
  for (const [from, to, pitch] of notes) {
    for (let i = Math.round(from * rate); i < Math.round(to * rate); i++) {
      const t = i / rate - from
      const fade = Math.min(1, t / 0.005, (to - from - t) / 0.02)
      for (let harmonic = 1; harmonic <= 3; harmonic++)
        plane[i]! +=
          ((fade * Math.exp(-1.5 * t) * 0.3) / harmonic ** 2) *
          Math.sin(2 * Math.PI * harmonic * 440 * 2 ** ((pitch - 69) / 12) * t)
    }
  }
  return plane
}

const scale = [60, 62, 64, 65, 67, 69, 71, 72].map((pitch, i): [number, number, number] => [
  0.5 + 0.5 * i,
  0.95 + 0.5 * i,
  pitch,
])

describe.each(['native', 'wasm'] as const)('the network on the runtime "%s"', (runtime) => {
  it.skipIf(!hasClip)(
    'finds the notes that the original finds (skipped without ../shared/models/basic-pitch)',
    async () => {
      const notes = notesOf(await noteActivations(await openAudio(clip), networks[runtime]!), usualNoteOptions)
      expect(notes.map(({ pitch, bends }) => [pitch, bends.map((bend) => Math.round(3 * bend) || 0)])).toEqual(
        // The original's bends are a third of a semitone too high.
        reference.events.map(([, , pitch, , bends]) => [pitch, bends.map((bend) => bend - 1)]),
      )
      for (const [index, [start, end, , amplitude]] of reference.events.entries()) {
        const note = notes[index]!
        expect(Math.abs(note.start - start)).toBeLessThan(frameSeconds)
        expect(Math.abs(note.end - end)).toBeLessThan(frameSeconds)
        expect(Math.abs(note.amplitude - amplitude)).toBeLessThan(1e-3)
      }
    },
  )

  it.skipIf(!hasClip || !hasProgram('ffmpeg'))(
    'gives within 1e-4 what the original gives with its own resampler (skipped without ffmpeg or the clip)',
    async () => {
      const path = join(folder, 'clip.wav')
      // soxr's quality "HQ".
      const filter = 'aresample=22050:resampler=soxr:precision=20:osf=flt'
      execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', clip, '-af', filter, '-c:a', 'pcm_f32le', path])
      const { notes, onsets } = await noteActivations(await openAudio(path), networks[runtime]!)
      for (const [index, { note, onset }] of Object.entries(reference.frames)) {
        const from = Number(index) * note.length
        const differences = note.map((value, i) =>
          Math.max(Math.abs(value - notes[from + i]!), Math.abs(onset[i]! - onsets[from + i]!)),
        )
        expect(Math.max(...differences), `frame ${index}`).toBeLessThan(1e-4)
      }
    },
  )

  it('finds a scale', async () => {
    const notes = notesOf(await noteActivations(streamOf([plucked(scale, 5)]), networks[runtime]!), usualNoteOptions)
    expect(notes.map(({ pitch }) => pitch)).toEqual(scale.map(([, , pitch]) => pitch))
    for (const [index, [from]] of scale.entries()) expect(Math.abs(notes[index]!.start - from)).toBeLessThan(0.03)
  })

  it.each([-1, 0, 1])('bends a tone %i thirds of a semitone above its pitch by as much', async (thirds) => {
    const tone = plucked([[0.5, 2, 69 + thirds / 3]], 3)
    const notes = notesOf(await noteActivations(streamOf([tone]), networks[runtime]!), usualNoteOptions)
    expect([...new Set(notes.map(({ pitch }) => pitch))]).toEqual([69])
    const bends = notes
      .flatMap((note) => note.bends.map((bend) => Math.round(3 * bend) || 0))
      .sort((one, other) => one - other)
    expect(bends[bends.length >> 1]).toBe(thirds)
  })
})

it('does not depend on the sizes of blocks', async () => {
  const plane = plucked(scale, 5)
  const activations = async (sizes: number[]) =>
    noteActivations({ ...streamOf([plane]), blocks: blocksOf([plane], sizes) }, networks.native!)
  expect(await activations([100_000])).toEqual(await activations([333, 7777]))
})

describe('options', () => {
  it('leave out pitches, short notes and soft onsets', async () => {
    const heard = await noteActivations(streamOf([plucked(scale, 5)]), networks.native!)
    const pitches = (options: object) => notesOf(heard, { ...usualNoteOptions, ...options }).map(({ pitch }) => pitch)
    expect(pitches({ minimumFrequency: 330 })).toEqual([64, 65, 67, 69, 71, 72])
    expect(pitches({ maximumFrequency: 392 })).toEqual([60, 62, 64, 65])
    expect(pitches({ minimumNoteLength: 600 })).toEqual([])
    expect(pitches({ onsetThreshold: 0.95, melodiaTrick: false }).length).toBeLessThan(8)
    expect(pitches({ onsetThreshold: 0.95, melodiaTrick: true })).toEqual(expect.arrayContaining([60, 72]))
  })
})

describe('the workflow', () => {
  const workflow = notesWorkflow()

  async function run(params: Record<string, unknown>, files: Record<string, string>) {
    const runner = opened(processRunner({ resolve: () => workflow }))
    const progress: number[] = []
    const { outputs, details } = await runOrder(runner, await orderOf(workflow, files, folder, params), {
      onProgress: (each) => progress.push(each.progress),
    })
    const report = JSON.parse(await readFile(outputs.notes!.path, 'utf8')) as {
      tempo: number
      tracks: { name: string; notes: Note[] }[]
    }
    return { report, details, progress, midi: readMidi(await readFile(outputs.midi!.path)) }
  }

  it('writes a track for each stem, at the tempo of the audio', async () => {
    const [vocals, bass] = [join(folder, 'vocals.wav'), join(folder, 'bass.wav')]
    await writeWav(vocals, [plucked(scale, 12)], rate)
    const steps = Array.from({ length: 23 }, (_, i): [number, number, number] => [
      0.5 * i,
      0.4 + 0.5 * i,
      40 + 5 * (i % 2),
    ])
    await writeWav(bass, [plucked(steps, 12)], rate)
    const { report, details, progress, midi } = await run({}, { vocalsUrl: vocals, bassUrl: bass })
    expect(report.tracks.map(({ name }) => name)).toEqual(['vocals', 'bass'])
    expect(report.tracks[0]!.notes.map(({ pitch }) => pitch)).toEqual(scale.map(([, , pitch]) => pitch))
    expect(new Set(report.tracks[1]!.notes.map(({ pitch }) => pitch))).toEqual(new Set([40, 45]))
    expect(Math.abs(report.tempo - 120)).toBeLessThan(1)
    expect(details).toMatchObject({ seconds: 12, tempo: report.tempo, notes: { vocals: 8 } })
    expect(progress.every((value, i) => i === 0 || value >= progress[i - 1]!)).toBe(true)

    expect(midi.tempo).toBeCloseTo(report.tempo, 1)
    expect(midi.tracks.map(({ name }) => name)).toEqual(['vocals', 'bass'])
    for (const [index, { notes }] of report.tracks.entries()) {
      expect(midi.tracks[index]!.notes.map(({ pitch }) => pitch)).toEqual(notes.map(({ pitch }) => pitch))
      for (const [i, { start, end }] of notes.entries()) {
        expect(Math.abs(midi.tracks[index]!.notes[i]!.start - start)).toBeLessThan(0.002)
        expect(Math.abs(midi.tracks[index]!.notes[i]!.end - end)).toBeLessThan(0.002)
      }
    }
  })

  it('takes a tempo, and leaves out bends', async () => {
    const song = join(folder, 'song.wav')
    await writeWav(song, [plucked(scale, 5)], rate)
    const { report, midi } = await run({ tempo: 90, pitchBends: false }, { inputUrl: song })
    expect([report.tempo, Math.round(midi.tempo)]).toEqual([90, 90])
    expect(midi.tracks[0]!.bends).toEqual([])
    expect(report.tracks[0]!.notes[0]!.bends.length).toBeGreaterThan(10)
  })

  it('refuses audio without samples, and params without an address', async () => {
    const empty = join(folder, 'empty.wav')
    await writeWav(empty, [new Float32Array(0)], rate)
    await expect(run({}, { inputUrl: empty })).rejects.toMatchObject({ code: 'BAD_INPUT' })
    const { success, error } = workflow.params.safeParse({})
    expect([success, error?.issues[0]?.message]).toEqual([false, expect.stringContaining('vocalsUrl')])
  })

  it('refuses a highest frequency that leaves no note', () => {
    const inputUrl = 'https://example.org/song.wav'
    const issues = (frequencies: object) => workflow.params.safeParse({ inputUrl, ...frequencies }).error?.issues ?? []
    expect(issues({ minimumFrequency: 440, maximumFrequency: 440 })).toMatchObject([
      { path: ['maximumFrequency'], message: 'must be above minimumFrequency: no note would be left' },
    ])
    for (const fine of [{ minimumFrequency: 440, maximumFrequency: 441 }, { minimumFrequency: 440 }, {}])
      expect(issues(fine)).toEqual([])
  })
})
