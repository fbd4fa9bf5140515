import { StemworkError } from '../../core/engine/errors.js'
import type { InputFile, WorkOrder } from '../../core/engine/ports/runner.js'
import type { Workflow } from '../../core/engine/workflow/workflow.js'
import { exitStatus, type Terminal } from '../command.js'
import { onInterruption } from '../terminal/interruption.js'
import { ProgressLine } from '../terminal/progress-line.js'
import { workErrorText } from '../terminal/system-error.js'

export interface Report {
  json: unknown
  text: string
}

/** Limits protect a service from strangers; here, the user owns both file and machine. */
const limits = { maxAudioSeconds: 1_000_000 }

/** The order for a workflow on a local file. The workflow requires a URL, but reads the file. */
export function foregroundOrder(
  { id, module }: Workflow,
  params: Record<string, unknown>,
  file: InputFile,
  directory: string,
): WorkOrder {
  const { url = null, settings = null } = module ?? {}
  return { jobId: id, workflow: id, module: url, settings, params, inputs: { inputUrl: file }, directory, limits }
}

/**
 * Runs the single task of a command in the foreground: shows progress, stops at Ctrl-C, prints the report. Returns the
 * exit status; with `json`, errors of the package are printed as JSON, and others are thrown.
 */
export async function runInForeground(
  json: boolean,
  terminal: Terminal,
  work: (signal: AbortSignal, progress: ProgressLine) => Promise<Report>,
): Promise<number> {
  const interruption = onInterruption((status) => process.exit(status))
  const progress = new ProgressLine(terminal.stderr)
  try {
    const report = await work(interruption.signal, progress)
    progress.clear()
    terminal.stdout.write(json ? `${JSON.stringify(report.json, null, 2)}\n` : report.text)
    return exitStatus.done
  } catch (error) {
    progress.clear()
    const status = interruption.status()
    if (status !== undefined) {
      terminal.stderr.write('Stopped; unfinished files were removed.\n')
      return status
    }
    if (!json || !StemworkError.is(error)) throw error
    const { code, reason = null } = error
    terminal.stdout.write(`${JSON.stringify({ error: { code, reason, message: workErrorText(error) } }, null, 2)}\n`)
    return exitStatus.failed
  } finally {
    interruption.release()
  }
}
