import type { SongEvaluation } from '../../core/workflows/separation/evaluation/evaluate.js'
import { type MethodSummary, summarize } from '../../core/workflows/separation/evaluation/summary.js'

/** The results as two Markdown tables that also read well on a terminal: all songs together, then each song. */
export function evaluationTable(songs: readonly SongEvaluation[]): string {
  const summaries = summarize(songs)
  const isOne = songs.length === 1
  const overall = [
    [
      'vocals / accompaniments, dB',
      'uSDR',
      'cSDR',
      'SI-SDR',
      'over the mixture',
      'false vocals',
      'sum error',
      'x real time',
    ],
    ...summaries.map(row),
  ]
  const bySong = [['uSDR, dB', ...summaries.map(({ method }) => method)], ...songs.map(songRow)]
  return `${table(overall)}${isOne ? '' : `\n${table(bySong)}`}`
}

function row({ method, vocals, accompaniments, improvement, falseVocals, sumError, speed }: MethodSummary): string[] {
  return [
    method,
    pair(vocals.uSdr, accompaniments.uSdr),
    pair(vocals.cSdr, accompaniments.cSdr),
    pair(vocals.siSdr, accompaniments.siSdr),
    pair(improvement.vocals, improvement.accompaniments),
    decibels(falseVocals, 1),
    sumError.toPrecision(1),
    speed === undefined ? none : speed.toFixed(1),
  ]
}

function songRow({ song, methods }: SongEvaluation): string[] {
  return [song, ...methods.map(({ vocals, accompaniments }) => pair(vocals.uSdr, accompaniments.uSdr))]
}

const none = '-'

function pair(vocals: number, accompaniments: number): string {
  return `${decibels(vocals)} / ${decibels(accompaniments)}`
}

function decibels(value: number, digits = 2): string {
  // Adding 0 removes the sign of values that round to zero.
  return Number.isFinite(value) ? (Math.round(value * 10 ** digits) / 10 ** digits + 0).toFixed(digits) : none
}

function table(rows: readonly string[][]): string {
  const [head = [], ...rest] = rows
  const widths = head.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  const padded = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  const line = (cells: readonly string[]) => `| ${cells.map(padded).join(' | ')} |\n`
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return `${line(head)}${line(rule)}${rest.map(line).join('')}`
}
