import { StemworkError } from '../../core/engine/errors.js'
import type { BatchProgress } from './batch-progress.js'
import type { Terminal } from '../command.js'
import { duration } from '../terminal/progress-line.js'
import { harmless } from '../terminal/style.js'
import { workErrorText } from '../terminal/system-error.js'

export type BatchReport = ReturnType<typeof batchReport>

/** Reports the outcome of each song: results on stdout, messages on stderr, all failures again at the end. */
export function batchReport({ stdout, stderr }: Terminal, progress: BatchProgress, json: boolean) {
  const failures: { input: string; message: string }[] = []
  let [separated, before] = [0, 0]
  let hint = ''
  const note = (text: string) => {
    progress.clear()
    stderr.write(`${harmless(text)}\n`)
  }
  const print = (result: unknown) => {
    progress.clear()
    stdout.write(typeof result === 'string' ? `${result}\n` : `${JSON.stringify(result)}\n`)
  }
  return {
    note,
    hasFailures: () => failures.length > 0,

    done(input: string, outputs: Record<string, string>, details: Record<string, unknown>, wallMs: number): void {
      separated++
      progress.end(input, `done in ${duration(wallMs / 1000)}`)
      if (json) print({ input, status: 'done', outputs, seconds: details.seconds, details })
      else print(Object.values(outputs).join('\n'))
      const clipped = Number(details.clippedSamples)
      if (clipped > 0)
        note(
          `${input}: ${clipped} samples were too loud for an integer format and were clipped. --format 32f keeps them.`,
        )
      if (Array.isArray(details.warnings)) for (const warning of details.warnings) note(`${input}: ${String(warning)}`)
      if (typeof details.hint === 'string') hint = `${details.hint}\n`
    },

    skipped(input: string, outputs: Record<string, string>): void {
      before++
      if (json) print({ input, status: 'skipped', outputs })
    },

    failed(input: string, error: unknown): void {
      const message = workErrorText(error)
      failures.push({ input, message })
      progress.end(input, 'failed')
      const { code = 'INTERNAL_ERROR', reason = null } = StemworkError.is(error) ? error : {}
      if (json) print({ input, status: 'failed', error: { code, reason, message } })
      else note(`${input}: ${message}`)
    },

    end(isInterrupted: boolean): void {
      progress.clear()
      if (isInterrupted) stderr.write('Stopped; unfinished files were removed. Run the same command to continue.\n')
      if (failures.length > 0)
        stderr.write(
          `\nFailed:\n${failures.map(({ input, message }) => `  ${harmless(`${input}: ${message}`)}\n`).join('')}`,
        )
      const counts = `${separated} separated, ${before} already done, ${failures.length} failed.\n`
      if (json) stderr.write(counts)
      else stdout.write(counts + hint)
    },
  }
}
