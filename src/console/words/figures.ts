import type { Job } from '../../client/client.js'
import { outputWords } from './words.js'

export interface Figure {
  label: string
  value: string
}

interface FigureWords {
  label: string
  unit?: string
  digits?: number
}

/** By the path within a job's details. */
const words: Record<string, FigureWords> = {
  'tempo.bpm': { label: 'Tempo', unit: 'bpm', digits: 0 },
  'tempo.confidence': { label: 'Tempo confidence', digits: 2 },
  'key.name': { label: 'Key' },
  'key.confidence': { label: 'Key confidence', digits: 2 },
  'key.tuningCents': { label: 'Tuning', unit: 'cents', digits: 0 },
  beatsPerBar: { label: 'Beats per bar' },
  gainDb: { label: 'Gain', unit: 'dB', digits: 1 },
  'loudness.integratedLufs': { label: 'Integrated loudness', unit: 'LUFS', digits: 1 },
  'loudness.truePeakDbtp': { label: 'True peak', unit: 'dBTP', digits: 1 },
  'loudness.rangeLu': { label: 'Loudness range', unit: 'LU', digits: 1 },
  'loudness.rangeLowLufs': { label: 'Loudness range, low end', unit: 'LUFS', digits: 1 },
  'loudness.rangeHighLufs': { label: 'Loudness range, high end', unit: 'LUFS', digits: 1 },
  'loudness.maxMomentaryLufs': { label: 'Loudest 400 ms', unit: 'LUFS', digits: 1 },
  'loudness.maxShortTermLufs': { label: 'Loudest 3 s', unit: 'LUFS', digits: 1 },
  'loudness.samplePeakDbfs': { label: 'Sample peak', unit: 'dBFS', digits: 1 },
  'loudness.gateLufs': { label: 'Relative gate', unit: 'LUFS', digits: 1 },
}

/** Figures that a musician looks for first, in this order. */
const headlines = [
  'tempo.bpm',
  'key.name',
  'beatsPerBar',
  'loudness.integratedLufs',
  'loudness.truePeakDbtp',
  'loudness.rangeLu',
  'gainDb',
]

/** Values that another figure covers, or that are shown in another way. */
const hidden = [
  'key.tonic',
  'key.mode',
  'title',
  'artist',
  'model',
  'timingsMs',
  'warnings',
  'clippedSamples',
  'seconds',
  'sampleRate',
  'hint',
  'runtimeHint',
]

/** Everything that a workflow has measured. */
export function figuresOf({ details }: Pick<Job, 'details'>): Figure[] {
  return [...valuesOf(details)].map(([path, value]) => figureOf(path, value))
}

/** The most important figures; none for a job that measures nothing. */
export function headlinesOf({ details }: Pick<Job, 'details'>): Figure[] {
  const values = valuesOf(details)
  return headlines.flatMap((path) => (values.has(path) ? [figureOf(path, values.get(path))] : []))
}

function valuesOf(details: Job['details']): Map<string, unknown> {
  const entries = Object.entries(details ?? {}).filter(([name]) => !hidden.includes(name))
  const flat = entries.flatMap(([name, value]): [string, unknown][] =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).map(([part, one]) => [`${name}.${part}`, one])
      : [[name, value]],
  )
  return new Map(flat.filter(([path]) => !hidden.includes(path)))
}

function figureOf(path: string, value: unknown): Figure {
  const { label, unit, digits } = words[path] ?? { label: outputWords(path.replace('.', ' ')) }
  if (value === null) return { label, value: 'Not measurable' }
  if (typeof value !== 'number') return { label, value: typeof value === 'string' ? value : JSON.stringify(value) }
  // With a minus sign, not a hyphen.
  const number = (digits === undefined ? String(value) : value.toFixed(digits)).replace('-', '\u2212')
  return { label, value: unit === undefined ? number : `${number} ${unit}` }
}
