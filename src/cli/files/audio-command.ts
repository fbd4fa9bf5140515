import { copyFile, rename, stat } from 'node:fs/promises'
import { getPriority, tmpdir } from 'node:os'
import { dirname, join, parse, resolve } from 'node:path'
import type { WorkResult } from '../../core/engine/ports/runner.js'
import { processRunner } from '../../core/engine/runner/process-runner.js'
import { checkInput, firstIssueText } from '../../core/engine/workflow/check-input.js'
import type { Workflow } from '../../core/engine/workflow/workflow.js'
import { type CommandInput, type CommandOption, flag, type Terminal, UsageError } from '../command.js'
import { foregroundOrder, type Report, runInForeground } from './foreground-run.js'
import { refuseInput, requireFile, unfinishedFolder } from './local-file.js'
import type { ProgressLine } from '../terminal/progress-line.js'

/** Options of the commands that run a workflow on one file of this machine. */
export const audioCommandOptions = {
  ffmpeg: flag('Use the ffmpeg on the PATH for formats that the package cannot decode.'),
  json: flag('Print one JSON object with the result or the error on stdout.'),
} satisfies Record<string, CommandOption>

export interface AudioRun {
  path: string
  workflow: Workflow
  /** Params without `inputUrl`; undefined values are dropped. */
  params: Record<string, unknown>
  /** Option names by numeric param. */
  numbers?: Record<string, string>
  /** Label of the progress. */
  label: string
  /** Target paths by result name; other results are discarded. */
  keep: Record<string, string>
  /** Returns the report to print; called before the results are moved to their targets. */
  report(result: WorkResult): Promise<Report>
}

/** Runs a workflow on a file in a child process, and prints its report. Returns the exit status. */
export function runAudioCommand(input: CommandInput, terminal: Terminal, run: AudioRun): Promise<number> {
  const numbers = Object.entries(run.numbers ?? {}).map(([param, option]) => [param, decimalOf(input, option)])
  const params = { ...Object.fromEntries(numbers), ...run.params }
  return runInForeground(input.isOn('json'), terminal, (signal, progress) =>
    runOnFile({ ...run, params }, signal, progress),
  )
}

async function runOnFile(
  { path, workflow, params, numbers = {}, label, keep, report }: AudioRun,
  signal: AbortSignal,
  progress: ProgressLine,
) {
  const given = { inputUrl: 'http://localhost/', ...withoutUndefined(params) }
  const checked = checkInput(workflow.params, given)
  if (!checked.success) throw new UsageError(`${namedByOption(firstIssueText(checked, 'options'), numbers)}.`)
  const targets = Object.values(keep)
  for (const target of targets) await refuseInput(path, target)
  const repeated = targets.find((target, n) => targets.slice(0, n).some((one) => resolve(one) === resolve(target)))
  if (repeated !== undefined) throw new UsageError(`Each result needs a file of its own, but two go to "${repeated}".`)
  const file = await requireFile(path)
  // Fails before the work if a target's folder is missing.
  for (const target of targets) await stat(resolve(dirname(target)))
  const [firstKept] = Object.values(keep)
  // Beside the result, so that a finished file only needs to be renamed.
  const parent = firstKept === undefined ? tmpdir() : resolve(dirname(firstKept))
  const unfinished = await unfinishedFolder(parent, '.stemwork-')
  // The user is waiting, so the work runs at this process's own priority.
  const runner = processRunner({ resolve: () => workflow, niceness: getPriority() })
  try {
    const result = await runner.run(foregroundOrder(workflow, given, file, unfinished.path), {
      signal,
      onProgress: ({ progress: fraction }) => progress.show(label, fraction),
    })
    signal.throwIfAborted()
    const printed = await report(result)
    for (const [name, target] of Object.entries(keep)) {
      const output = result.outputs[name]
      if (output) await move(output.path, target)
    }
    return printed
  } finally {
    await runner.close()
    await unfinished.remove()
  }
}

async function move(from: string, to: string): Promise<void> {
  await rename(from, to).catch((error: NodeJS.ErrnoException) => {
    // A second result may go to another disk.
    if (error.code !== 'EXDEV') throw error
    return copyFile(from, to)
  })
}

/** Names the option instead of the param, which the user does not know. */
function namedByOption(issue: string, numbers: Record<string, string>): string {
  const [name = ''] = issue.split(':', 1)
  return Object.hasOwn(numbers, name) ? `--${numbers[name]}${issue.slice(name.length)}` : issue
}

/** @throws UsageError unless the option is absent or a number; the workflow's params check the range */
export function decimalOf(input: CommandInput, name: string): number | undefined {
  const text = input.text(name)
  if (text === undefined) return undefined
  if (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)) return Number(text)
  throw new UsageError(`--${name} must be a number such as 1.5, not "${text}".`)
}

/** Settings of the workflows that follow from the options above. */
export function decodersOf(input: CommandInput): { ffmpeg: true } | undefined {
  return input.isOn('ffmpeg') ? { ffmpeg: true } : undefined
}

/** The path with another extension, and words appended to its name. */
export function pathBeside(path: string, words: string, extension: string): string {
  const { dir, name } = parse(path)
  return join(dir, `${name}${words}.${extension}`)
}

function withoutUndefined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}
