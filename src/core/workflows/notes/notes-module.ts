import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { badInput } from '../../engine/errors.js'
import { packageFile } from '../../engine/package-files.js'
import type { StageContext, Workflow } from '../../engine/workflow/workflow.js'
import type { AudioStream } from '../../media/dsp/audio-stream.js'
import { withWarmNetwork } from '../../models/session/warm-networks.js'
import { analyzeAudio } from '../../media/analysis/analyze-audio.js'
import type { Rhythm } from '../../media/analysis/rhythm.js'
import { openInput } from '../open-input.js'
import { midiFile, type MidiTrack } from './midi-file.js'
import { noteActivations } from './note-activations.js'
import { type Note, notesOf } from './note-events.js'
import { defineNotes, type NotesInput, type NotesParams, type NotesSettings, stemInputs } from './notes-workflow.js'

/** Basic-pitch by Spotify, with its licence and notice beside it. */
const networkPath = fileURLToPath(packageFile('models/basic-pitch/nmp.onnx'))
/** The tempo that players assume for a MIDI file that states none. */
const usualBpm = 120

/** The workflow as the child process loads it. */
export default function notesModule(settings: unknown): Workflow {
  return defineNotes(
    settings,
    (checked) => (context) => run(context, checked),
    () => withWarmNetwork(networkPath, {}, async ({ runtime }) => ({ runtime })),
  )
}

async function run(context: StageContext<NotesParams, NotesInput>, settings: NotesSettings): Promise<void> {
  const { params, signal } = context
  const files = trackFiles(context)
  // The network's pass takes nearly all of the time.
  const opened = (path: string, from: number, share: number) =>
    openInput(context, path, settings.decoders, (fraction) =>
      context.progress((from + share * fraction) / files.length),
    )
  const tracks: MidiTrack[] = []
  const warnings: string[] = []
  let seconds = 0
  let tempo: Rhythm['tempo'] = null
  for (const [index, { name, path }] of files.entries()) {
    const stream = await opened(path, index, 0.8)
    const heard = await withWarmNetwork(networkPath, {}, (network) => noteActivations(stream, network, signal))
    requireAudio(heard.seconds, stream)
    tracks.push({ name, notes: notesOf(heard, params) })
    seconds = Math.max(seconds, heard.seconds)
    warnings.push(...(stream.warnings ?? []))
    if (params.tempo !== undefined) continue
    const found = (await analyzeAudio(await opened(path, index + 0.8, 0.2), { signal })).tempo
    if (found && found.confidence > (tempo?.confidence ?? 0)) tempo = found
  }
  const bpm = params.tempo ?? tempo?.bpm ?? usualBpm
  await writeFile(context.outputPath('midi'), midiFile(params.pitchBends ? tracks : tracks.map(straight), bpm))
  const report = { seconds, tempo: bpm, tracks: tracks.map(({ name, notes }) => ({ name, notes: notes.map(rounded) })) }
  await writeFile(context.outputPath('notes'), `${JSON.stringify(report)}\n`)
  context.detail('seconds', seconds)
  context.detail('tempo', bpm)
  context.detail('notes', Object.fromEntries(tracks.map(({ name, notes }) => [name, notes.length])))
  if (warnings.length > 0) context.detail('warnings', [...new Set(warnings)])
}

/** The files in the order of their tracks. */
function trackFiles({ inputs }: StageContext<NotesParams, NotesInput>): { name: string; path: string }[] {
  const named = [['song', 'inputUrl'] as const, ...stemInputs]
  return named.flatMap(([name, input]) => {
    const file = inputs[input]
    return file ? [{ name, path: file.path }] : []
  })
}

function requireAudio(seconds: number, { format }: AudioStream): void {
  if (seconds > 0) return
  throw badInput('no_audio', `The file (${format}) holds no audio. Send one with at least a few milliseconds of sound.`)
}

function straight({ name, notes }: MidiTrack): MidiTrack {
  return { name, notes: notes.map((note) => ({ ...note, bends: [] })) }
}

function rounded({ start, end, pitch, amplitude, bends }: Note): Note {
  const to = (digits: number) => (value: number) => Math.round(value * 10 ** digits) / 10 ** digits
  return {
    start: to(4)(start),
    end: to(4)(end),
    pitch,
    amplitude: to(3)(amplitude),
    bends: bends.map(to(2)),
  }
}
