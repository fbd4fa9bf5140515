import { z } from 'zod'
import { scriptFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { stemNames } from '../../models/stems.js'
import { type AudioSettings, checkedSettings, flag, inputUrlParam, onlyInChild, range } from '../audio-settings.js'
import { type NoteOptions, usualNoteOptions } from './note-options.js'

const id = 'service/notes'

export type NotesSettings = Pick<AudioSettings, 'decoders'>

/** Addresses of single stems, each of which becomes a track. */
export const stemInputs = stemNames.map((stem) => [stem, `${stem}Url` as const] as const)

export type NotesInput = 'inputUrl' | (typeof stemInputs)[number][1]

/** Parameters of a job. */
export type NotesParams = Partial<Record<NotesInput, string>> &
  NoteOptions & {
    pitchBends: boolean
    tempo?: number
  }

/**
 * `service/notes`: the notes of a song, or of its stems, as a MIDI file and as JSON, by the network basic-pitch, which
 * is in the package.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function notesWorkflow(settings: NotesSettings = {}): Workflow {
  return defineNotes(settings, () => onlyInChild(id))
}

/** Defines the workflow with its work. */
export function defineNotes(
  settings: unknown,
  work: (settings: NotesSettings) => Stage<NotesParams, NotesInput>['run'],
  prepare?: Workflow['prepare'],
): Workflow {
  const checked = checkedSettings(id, settings)
  const input = inputUrlParam(checked.decoders)
  const stems = Object.fromEntries(
    stemInputs.map(([stem, name]) => [name, input.optional().describe(`Address of the stem "${stem}".`)]),
  )
  const inputs: NotesInput[] = ['inputUrl', ...stemInputs.map(([, name]) => name)]
  const params: z.ZodType<NotesParams> = z
    .strictObject({
      inputUrl: input.optional(),
      ...stems,
      ...optionParams,
      pitchBends: flag(
        true,
        'Pitch bends',
        'Slides and vibrato of notes that sound alone are in the MIDI file, too. The JSON has those of all notes.',
      ),
      tempo: range(20, 400)
        .optional()
        .describe('Tempo of the MIDI file; without it, that of the song, or 120.')
        .meta({ title: 'Tempo', 'x-unit': 'bpm' }),
    })
    .refine((given) => inputs.some((name) => name in given), {
      path: ['inputUrl'],
      error: `is missing: expected the address of a song here, or of stems in ${inputs.slice(1).join(', ')}`,
    })
    .refine(({ minimumFrequency = 0, maximumFrequency = Infinity }) => minimumFrequency < maximumFrequency, {
      path: ['maximumFrequency'],
      error: 'must be above minimumFrequency: no note would be left',
    })
  return defineWorkflow({
    id,
    name: 'Notes',
    description: 'Writes the notes of a song or of its stems as MIDI and JSON.',
    params,
    inputs,
    outputs: {
      midi: { fileName: 'notes.mid', contentType: 'audio/midi' },
      notes: { fileName: 'notes.json', contentType: 'application/json' },
    },
    stages: [{ name: 'transcribe', run: work(checked) }],
    module: { url: scriptFile('core/workflows/notes/notes-module.js'), settings: checked },
    prepare,
  })
}

const threshold = range(0.05, 0.95)
const frequency = range(20, 10_000).optional()
const optionParams = {
  onsetThreshold: threshold
    .default(usualNoteOptions.onsetThreshold)
    .describe('How clearly a note must begin, from 0.05 to 0.95. Lower values find more notes.')
    .meta({ title: 'Clear beginnings' }),
  frameThreshold: threshold
    .default(usualNoteOptions.frameThreshold)
    .describe('How clearly a note must sound to continue, from 0.05 to 0.95. Lower values make notes longer.')
    .meta({ title: 'Clear tones' }),
  minimumNoteLength: range(0, 10_000)
    .default(usualNoteOptions.minimumNoteLength)
    .describe('Shorter notes are left out.')
    .meta({ title: 'Shortest note', 'x-unit': 'ms' }),
  minimumFrequency: frequency
    .describe('Lower notes are left out. Without it, none are.')
    .meta({ title: 'Lowest frequency', 'x-unit': 'Hz', examples: [82.41] }),
  maximumFrequency: frequency
    .describe('Notes of this frequency and above are left out. Without it, none are.')
    .meta({ title: 'Highest frequency', 'x-unit': 'Hz', examples: [1046.5] }),
  melodiaTrick: flag(
    usualNoteOptions.melodiaTrick,
    'Soft beginnings',
    'Sounds that last, but have no clear beginning, are notes as well.',
  ),
}
