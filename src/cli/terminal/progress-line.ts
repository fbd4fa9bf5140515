import type { Terminal } from '../command.js'

const redrawMs = 100
const percentStep = 10

/**
 * Progress for people: on a terminal, a bar with the time left; elsewhere, a line for every 10 percent.
 *
 * @param clock milliseconds
 */
export class ProgressLine {
  readonly #stream: Terminal['stderr']
  readonly #clock: () => number
  readonly #startedAt: number
  #drawnAt = -Infinity
  #drawn = ''
  #lastStep = 0

  constructor(stream: Terminal['stderr'], clock: () => number = () => performance.now()) {
    this.#stream = stream
    this.#clock = clock
    this.#startedAt = clock()
  }

  /** @param fraction 0..1 */
  show(label: string, fraction: number): void {
    const now = this.#clock()
    const percent = Math.floor(fraction * 100)
    const left = timeLeft(fraction, (now - this.#startedAt) / 1000)
    if (!this.#stream.isTTY) {
      const step = Math.floor(percent / percentStep)
      if (step <= this.#lastStep) return
      this.#lastStep = step
      this.#stream.write(`${label} ${percent}%${left && `, ${left}`}\n`)
      return
    }
    if (now - this.#drawnAt < redrawMs && fraction < 1) return
    this.#drawnAt = now
    const width = Math.max(10, Math.min(30, (this.#stream.columns ?? 80) - label.length - 30))
    const filled = Math.round(fraction * width)
    this.#draw(`${label} [${'#'.repeat(filled)}${'-'.repeat(width - filled)}] ${String(percent).padStart(3)}%  ${left}`)
  }

  /** Removes the bar, so that what is written next begins at the start of an empty line. */
  clear(): void {
    if (this.#drawn) this.#stream.write(`\r${' '.repeat(this.#drawn.length)}\r`)
    this.#drawn = ''
  }

  #draw(text: string): void {
    this.#stream.write(`\r${text.padEnd(this.#drawn.length)}`)
    this.#drawn = text
  }
}

/**
 * The time left, in words; empty at first. An early estimate is worse than none: the model is still being loaded, and
 * little is known.
 */
export function timeLeft(fraction: number, elapsedSeconds: number): string {
  if (fraction >= 1 || fraction < 0.03 || elapsedSeconds < 1) return ''
  return `${duration((elapsedSeconds * (1 - fraction)) / fraction)} left`
}

/** For example `8 s`, `2 min 05 s`, `1 h 02 min`. */
export function duration(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, '0')} min`
}
