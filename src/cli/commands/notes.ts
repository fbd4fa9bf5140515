import { readFile } from 'node:fs/promises'
import { notesWorkflow } from '../../core/workflows/notes/notes-workflow.js'
import { audioCommandOptions, decodersOf, pathBeside, runAudioCommand } from '../files/audio-command.js'
import { type Command, flag, valued } from '../command.js'

interface Report {
  seconds: number
  tempo: number
  tracks: { name: string; notes: unknown[] }[]
}

export const command: Command = {
  usage: 'notes <file> [output.mid] [options]',
  description: 'Writes the notes of a song, or of a stem, as a MIDI file.',
  positionals: { min: 1, max: 2 },
  options: {
    onset: valued('0.05..0.95', 'How clearly a note must begin; lower finds more. Default: 0.5.'),
    frame: valued('0.05..0.95', 'How clearly it must sound to go on. Default: 0.3.'),
    shortest: valued('ms', 'Leave out shorter notes. Default: 127.7.'),
    'min-frequency': valued('Hz', 'Leave out lower notes.'),
    'max-frequency': valued('Hz', 'Leave out notes of this frequency and above.'),
    'clear-only': flag('Leave out sounds without a clear beginning.'),
    'no-bends': flag('Write no pitch bends.'),
    tempo: valued('bpm', 'Tempo of the MIDI file. Default: that of the audio.'),
    ...audioCommandOptions,
  },
  notes: 'Stems give better notes than a mix: separate the song first. --json prints all notes with their bends.',
  async run(input, terminal) {
    const path = input.first
    const output = input.positionals[1] ?? pathBeside(path, '', 'mid')
    return runAudioCommand(input, terminal, {
      path,
      workflow: notesWorkflow({ decoders: decodersOf(input) }),
      params: {
        melodiaTrick: input.isOn('clear-only') ? false : undefined,
        pitchBends: input.isOn('no-bends') ? false : undefined,
      },
      numbers: {
        onsetThreshold: 'onset',
        frameThreshold: 'frame',
        minimumNoteLength: 'shortest',
        minimumFrequency: 'min-frequency',
        maximumFrequency: 'max-frequency',
        tempo: 'tempo',
      },
      label: 'Listening',
      keep: { midi: output },
      async report({ outputs, details }) {
        const { warnings = [] } = details
        const report = JSON.parse(await readFile(outputs.notes?.path ?? '', 'utf8')) as Report
        const count = report.tracks.reduce((sum, { notes }) => sum + notes.length, 0)
        const facts = `${output}: ${count} notes in ${report.seconds.toFixed(1)} s, ${report.tempo.toFixed(1)} bpm`
        return {
          json: { input: path, output, ...report, warnings },
          text: [facts, ...(warnings as string[])].map((line) => `${line}\n`).join(''),
        }
      },
    })
  },
}
