import type { Terminal } from '../command.js'
import { timeLeft } from '../terminal/progress-line.js'
import { harmless } from '../terminal/style.js'

const redrawMs = 100
const percentStep = 25
const barWidth = 20

interface RunningSong {
  label: string
  bytes: number
  fraction: number
  lastStep: number
}

/**
 * Progress of many songs: on a terminal, a bar for all and one for each running song; elsewhere, a line for each
 * quarter of a song, with the overall share. Songs are weighted by the size of their files.
 */
export class BatchProgress {
  readonly #stream: Terminal['stderr']
  readonly #clock: () => number
  readonly #running = new Map<string, RunningSong>()
  #songs = 0
  #begun = 0
  #ended = 0
  #bytes = 0
  #endedBytes = 0
  #startedAt: number
  #drawnAt = -Infinity
  #drawnLines = 0

  /** @param clock milliseconds */
  constructor(stream: Terminal['stderr'], clock: () => number = () => performance.now()) {
    this.#stream = stream
    this.#clock = clock
    this.#startedAt = clock()
  }

  /** Adds songs to be done; restarts the clock if none were pending. */
  add(songs: readonly { bytes: number }[]): void {
    if (this.#ended === this.#songs) {
      this.#startedAt = this.#clock()
      this.#bytes = this.#endedBytes = 0
    }
    this.#songs += songs.length
    for (const { bytes } of songs) this.#bytes += bytes
  }

  begin(id: string, bytes: number): void {
    this.#begun++
    const label = `[${this.#begun}/${this.#songs}] ${harmless(id)}`
    this.#running.set(id, { label, bytes, fraction: 0, lastStep: 0 })
    this.#draw(true)
  }

  /** @param fraction 0..1 of this song */
  show(id: string, fraction: number): void {
    const song = this.#running.get(id)
    if (!song) return
    song.fraction = fraction
    if (this.#stream.isTTY) return this.#draw(false)
    const step = Math.floor((fraction * 100) / percentStep)
    if (step <= song.lastStep || fraction >= 1) return
    song.lastStep = step
    this.#stream.write(`${song.label}: ${step * percentStep}% (${this.#all()})\n`)
  }

  /** @param outcome in words, for logs */
  end(id: string, outcome: string): void {
    const song = this.#running.get(id)
    if (!song) return
    this.#running.delete(id)
    this.#ended++
    this.#endedBytes += song.bytes
    if (!this.#stream.isTTY) this.#stream.write(`${song.label}: ${outcome} (${this.#all()})\n`)
    this.#draw(true)
  }

  /** Removes the bars, so that what is written next begins at the start of an empty line. */
  clear(): void {
    if (this.#drawnLines > 0) this.#stream.write(`\u001B[${this.#drawnLines}A\u001B[J`)
    this.#drawnLines = 0
  }

  #draw(atOnce: boolean): void {
    const now = this.#clock()
    if (!this.#stream.isTTY || (!atOnce && now - this.#drawnAt < redrawMs)) return
    this.#drawnAt = now
    this.clear()
    const lines = [...this.#running.values()].map(({ label, fraction }) => bar(fraction, label))
    if (this.#ended < this.#songs) lines.push(bar(this.#fraction(), `all: ${this.#all()}`))
    const columns = this.#stream.columns ?? 80
    // A line that wraps would take two lines to remove.
    const shown = lines.map((line) =>
      Array.from(line)
        .slice(0, columns - 1)
        .join(''),
    )
    this.#stream.write(shown.map((line) => `${line}\n`).join(''))
    this.#drawnLines = shown.length
  }

  #fraction(): number {
    let done = this.#endedBytes
    for (const { bytes, fraction } of this.#running.values()) done += bytes * fraction
    return this.#bytes === 0 ? 0 : Math.min(1, done / this.#bytes)
  }

  #all(): string {
    const fraction = this.#fraction()
    const left = timeLeft(fraction, (this.#clock() - this.#startedAt) / 1000)
    return `${this.#ended} of ${this.#songs} songs, ${Math.floor(fraction * 100)}%${left && `, ${left}`}`
  }
}

function bar(fraction: number, text: string): string {
  const filled = Math.round(fraction * barWidth)
  return (
    `[${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] ` +
    `${String(Math.floor(fraction * 100)).padStart(3)}%  ${text}`
  )
}
