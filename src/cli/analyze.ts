import { readFile } from 'node:fs/promises'
import type { MusicAnalysis } from '../core/media/analysis/analyze-audio.js'
import { analyzeWorkflow } from '../core/workflows/analysis/analyze-workflow.js'
import { audioCommandOptions, runAudioCommand } from './audio-command.js'
import { type Command, firstPositional, textOf } from './command.js'
import { duration } from './progress-line.js'

type Report = MusicAnalysis & { loudness: { integratedLufs: number | null }; warnings?: string[] }

export const analyzeCommand: Command = {
  usage: 'analyze <file> [options]',
  description: 'Finds tempo, beats, bars, key, loudness and silence of a song.',
  positionals: { min: 1, max: 1 },
  options: {
    peaks: { type: 'string', value: 'file.json', help: 'Write peaks for players.' },
    beats: { type: 'string', value: 'model', help: 'Pulled model that finds the beats: beat-this-small.' },
    ...audioCommandOptions,
  },
  notes: '--json prints the whole report, with the times of beats and bars.',
  async run(input, terminal) {
    const path = firstPositional(input)
    const peaks = textOf(input, 'peaks')
    return runAudioCommand(
      {
        path,
        workflow: analyzeWorkflow({
          decoders: input.values.ffmpeg === true ? { ffmpeg: true } : undefined,
          beats: textOf(input, 'beats'),
        }),
        params: { peaks: peaks !== undefined },
        label: 'Analyzing',
        keep: peaks === undefined ? {} : { peaks },
        async report({ outputs }) {
          const text = outputs.report === undefined ? '{}' : await readFile(outputs.report.path, 'utf8')
          const report = JSON.parse(text) as Report
          return { json: { input: path, ...report }, text: summary(report) }
        },
      },
      input,
      terminal,
    )
  },
}

function summary({ seconds, tempo, beats, downbeats, key, loudness, silence, warnings = [] }: Report): string {
  const sure = (confidence: number) => `(confidence ${confidence.toFixed(2)})`
  const other = tempo?.candidates?.[1]
  const orElse = other && other.strength > 0 ? `, or ${other.bpm.toFixed(1)} (${other.strength.toFixed(2)})` : ''
  const rows: [string, string][] = [
    // A second or less would be rounded to one.
    ['Length', seconds < 10 ? `${seconds.toFixed(2)} s` : duration(seconds)],
    ['Tempo', tempo ? `${tempo.bpm.toFixed(1)} bpm ${sure(tempo.confidence)}${orElse}, ${beats.length} beats` : '-'],
    ['Bars', downbeats ? `${downbeats.beatsPerBar} beats each ${sure(downbeats.confidence)}` : '-'],
    ['Key', key ? `${key.name} ${sure(key.confidence)}` : '-'],
    ['Loudness', loudness.integratedLufs === null ? '-' : `${loudness.integratedLufs.toFixed(1)} LUFS`],
    ['Silence', silence.map(({ start, end }) => `${start.toFixed(1)}-${end.toFixed(1)} s`).join(', ') || '-'],
  ]
  return [...rows.map(([name, value]) => name.padEnd(16) + value), ...warnings].map((line) => `${line}\n`).join('')
}
