import { readFile } from 'node:fs/promises'
import type { MusicAnalysis } from '../../core/media/analysis/analyze-audio.js'
import { analyzeWorkflow } from '../../core/workflows/analysis/analyze-workflow.js'
import { audioCommandOptions, decodersOf, runAudioCommand } from '../files/audio-command.js'
import { type Command, valued } from '../command.js'
import { duration } from '../terminal/progress-line.js'

type Report = MusicAnalysis & { loudness: { integratedLufs: number | null }; warnings?: string[] }

/** Maximum number of chords or sections in the summary. */
const mostListed = 12

export const command: Command = {
  usage: 'analyze <file> [options]',
  description: 'Finds tempo, beats, bars, key, chords, sections, loudness and silence of a song.',
  positionals: { min: 1, max: 1 },
  options: {
    peaks: valued('file.json', 'Write peaks for players.'),
    chords: valued('file.txt', 'Write the chords as a label track for Audacity.'),
    sections: valued('file.txt', 'Write the sections as a label track for Audacity.'),
    beats: valued('model', 'Model that finds the beats, pulled before: beat-this-small.'),
    ...audioCommandOptions,
  },
  notes: '--json prints the whole report, with the times of beats, bars, chords and sections.',
  async run(input, terminal) {
    const path = input.first
    const files = (['peaks', 'chords', 'sections'] as const)
      .map((name) => [name, input.text(name)] as const)
      .filter((entry): entry is [(typeof entry)[0], string] => entry[1] !== undefined)
    const keep: Record<string, string> = Object.fromEntries(files)
    return runAudioCommand(input, terminal, {
      path,
      workflow: analyzeWorkflow({ decoders: decodersOf(input), beats: input.text('beats') }),
      params: { peaks: 'peaks' in keep, labels: 'chords' in keep || 'sections' in keep },
      label: 'Analyzing',
      keep,
      async report({ outputs }) {
        const text = outputs.report === undefined ? '{}' : await readFile(outputs.report.path, 'utf8')
        const report = JSON.parse(text) as Report
        return { json: { input: path, ...report }, text: summary(report) }
      },
    })
  },
}

function summary({
  seconds,
  tempo,
  beats,
  downbeats,
  key,
  chords,
  sections,
  loudness,
  silence,
  warnings = [],
}: Report): string {
  const sure = (confidence: number) => `(confidence ${confidence.toFixed(2)})`
  const other = tempo?.candidates?.[1]
  const orElse = other && other.strength > 0 ? `, or ${other.bpm.toFixed(1)} (${other.strength.toFixed(2)})` : ''
  const rows: [string, string][] = [
    // `duration` would round a second or less to one.
    ['Length', seconds < 10 ? `${seconds.toFixed(2)} s` : duration(seconds)],
    ['Tempo', tempo ? `${tempo.bpm.toFixed(1)} bpm ${sure(tempo.confidence)}${orElse}, ${beats.length} beats` : '-'],
    ['Bars', downbeats ? `${downbeats.beatsPerBar} beats each ${sure(downbeats.confidence)}` : '-'],
    ['Key', key ? `${key.name} ${sure(key.confidence)}` : '-'],
    ['Chords', listed(chords.map(({ name }) => name))],
    ['Sections', listed(sections.map(({ label }) => label))],
    ['Loudness', loudness.integratedLufs === null ? '-' : `${loudness.integratedLufs.toFixed(1)} LUFS`],
    ['Silence', silence.map(({ start, end }) => `${start.toFixed(1)}-${end.toFixed(1)} s`).join(', ') || '-'],
  ]
  return [...rows.map(([name, value]) => name.padEnd(16) + value), ...warnings].map((line) => `${line}\n`).join('')
}

function listed(names: readonly string[]): string {
  const more = names.length > mostListed ? ` ... (${names.length})` : ''
  return names.length > 0 ? names.slice(0, mostListed).join(' ') + more : '-'
}
