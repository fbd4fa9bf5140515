import { StemworkError } from '../core/engine/errors.js'
import type { BatchProgress } from './batch-progress.js'
import type { Terminal } from './command.js'
import { duration } from './progress-line.js'
import { workErrorText } from './system-error.js'

/** What became of each song: results on stdout, messages on stderr, failures once more at the end. */
export class BatchReport {
  readonly #terminal: Terminal
  readonly #progress: BatchProgress
  readonly #json: boolean
  readonly #failures: { input: string; message: string }[] = []
  #done = 0
  #skipped = 0
  #hint: string | undefined

  constructor(terminal: Terminal, progress: BatchProgress, json: boolean) {
    this.#terminal = terminal
    this.#progress = progress
    this.#json = json
  }

  get hasFailures(): boolean {
    return this.#failures.length > 0
  }

  note(text: string): void {
    this.#progress.clear()
    this.#terminal.stderr.write(`${text}\n`)
  }

  done(input: string, outputs: Record<string, string>, details: Record<string, unknown>, wallMs: number): void {
    this.#done++
    this.#progress.end(input, `done in ${duration(wallMs / 1000)}`)
    if (this.#json) this.#print({ input, status: 'done', outputs, seconds: details.seconds, details })
    else this.#print(Object.values(outputs).join('\n'))
    const clipped = Number(details.clippedSamples)
    if (clipped > 0)
      this.note(
        `${input}: ${clipped} samples were too loud for an integer format and were clipped. --format 32f keeps them.`,
      )
    if (Array.isArray(details.warnings))
      for (const warning of details.warnings) this.note(`${input}: ${String(warning)}`)
    if (typeof details.hint === 'string') this.#hint = details.hint
  }

  skipped(input: string, outputs: Record<string, string>): void {
    this.#skipped++
    if (this.#json) this.#print({ input, status: 'skipped', outputs })
  }

  failed(input: string, error: unknown): void {
    const message = workErrorText(error)
    this.#failures.push({ input, message })
    this.#progress.end(input, 'failed')
    const { code = 'INTERNAL_ERROR', reason = null } = StemworkError.is(error) ? error : {}
    if (this.#json) this.#print({ input, status: 'failed', error: { code, reason, message } })
    else this.note(`${input}: ${message}`)
  }

  end(isInterrupted: boolean): void {
    this.#progress.clear()
    const { stdout, stderr } = this.#terminal
    if (isInterrupted) stderr.write('Stopped; unfinished files were removed. Run the same command to continue.\n')
    if (this.#failures.length > 0) {
      stderr.write(`\nFailed:\n${this.#failures.map(({ input, message }) => `  ${input}: ${message}\n`).join('')}`)
    }
    const counts = `${this.#done} separated, ${this.#skipped} already done, ${this.#failures.length} failed.\n`
    const hint = this.#hint === undefined ? '' : `${this.#hint}\n`
    if (this.#json) stderr.write(counts)
    else stdout.write(counts + hint)
  }

  #print(result: unknown): void {
    this.#progress.clear()
    this.#terminal.stdout.write(typeof result === 'string' ? `${result}\n` : `${JSON.stringify(result)}\n`)
  }
}
