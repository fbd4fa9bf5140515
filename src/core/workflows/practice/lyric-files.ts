import type { TimedLine } from './line-times.js'

interface SongFacts {
  title?: string
  artist?: string
  seconds: number
  /** Name of the audio file that goes with the text. */
  audio: string
}

/** A line is cleared from the screen if the next one begins this much later. */
const clearAfterSeconds = 3
/** UltraStar counts in quarters of a beat, and files state enough beats for steps below 50 ms. */
const finestBpm = 320
const unknownBpm = 120

/** Timed lines for players (LRC). */
export function lrcFile(lines: readonly TimedLine[], { title, artist, seconds }: SongFacts): string {
  const rows = lines.flatMap(({ text, start, end }, index) => {
    const next = lines[index + 1]?.start ?? Infinity
    return [`[${clock(start)}]${text}`, ...(next - end > clearAfterSeconds ? [`[${clock(end)}]`] : [])]
  })
  const head = [title && `[ti:${title}]`, artist && `[ar:${artist}]`, `[length:${clock(seconds)}]`]
  return [...head.filter(Boolean), ...rows].map((row) => `${row}\n`).join('')
}

/**
 * The same for UltraStar and similar games. The words of a line share its time by their letters. They are free notes
 * (`F`), which are not scored, because their pitch is unknown.
 */
export function ultraStarFile(
  lines: readonly TimedLine[],
  { title, artist, audio }: SongFacts,
  tempo = unknownBpm,
): string {
  const first = lines[0]?.start ?? 0
  let bpm = tempo
  while (bpm < finestBpm) bpm *= 2
  const beatAt = (seconds: number) => Math.round(((seconds - first) * bpm * 4) / 60)
  const head = {
    TITLE: title ?? 'Unknown',
    ARTIST: artist ?? 'Unknown',
    MP3: audio,
    BPM: bpm.toFixed(2),
    GAP: Math.round(first * 1000),
  }
  const rows = lines.flatMap((line, index) => [
    ...(index > 0 ? [`- ${beatAt(line.start)}`] : []),
    ...wordsOf(line).map(({ text, start, end }, word) => {
      const [from, to] = [beatAt(start), beatAt(end)]
      return `F ${from} ${Math.max(1, to - from)} 0 ${word > 0 ? ' ' : ''}${text}`
    }),
  ])
  return [...Object.entries(head).map(([name, value]) => `#${name}:${value}`), ...rows, 'E']
    .map((row) => `${row}\n`)
    .join('')
}

function wordsOf({ text, start, end }: TimedLine): TimedLine[] {
  const words = text.split(' ')
  const letters = text.length - words.length + 1
  let position = start
  return words.map((word) => {
    const from = position
    position += ((end - start) * word.length) / letters
    return { text: word, start: from, end: position }
  })
}

/** `mm:ss.xx`, minutes beyond 99 as they are. */
function clock(seconds: number): string {
  const hundredths = Math.round(seconds * 100)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${two(Math.floor(hundredths / 6000))}:${two(Math.floor(hundredths / 100) % 60)}.${two(hundredths % 100)}`
}
