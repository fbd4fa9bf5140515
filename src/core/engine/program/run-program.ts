import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { badInput, internalError, StemworkError } from '../errors.js'
import { installedScript } from '../package-files.js'
import type { NeededProgram } from '../workflow/workflow.js'
import { findProgram } from './find-program.js'
import type { GuardOrder, ProgramEnding } from './guard.js'
import { jobFile, messageReader } from './job-protocol.js'
import type { ProgramContext, ProgramFailure, ProgramOptions, ProgramResult } from './program-options.js'
import { lineReader, progressReader } from './progress-lines.js'

const mebibyte = 1024 * 1024
const defaultOutputMb = 20_480
const mostStdout = mebibyte
const mostStderr = 4_000
/** How long the pipes may stay open after the guard has ended. */
const closingMs = 1_000

type Settings = Omit<ProgramOptions, 'args' | 'stage' | 'path'>

/** See `Program.run`. */
export async function runProgram(
  needed: NeededProgram,
  args: readonly string[],
  settings: Settings,
  context: ProgramContext,
): Promise<ProgramResult> {
  const { signal, directory } = context
  signal.throwIfAborted()
  const path = await findProgram(needed)
  const environment = { ...cleanEnvironment(directory), ...settings.env }
  const messages = settings.protocol === undefined ? undefined : messageReader(context)
  if (messages) {
    const file = join(directory, `job-${needed.name.replace(/\W/g, '_')}.json`)
    await writeFile(file, JSON.stringify(jobFile(context)), { mode: 0o600 })
    environment.STEMWORK_JOB = file
  }
  // The listener below would miss an abort that came meanwhile.
  signal.throwIfAborted()
  const guard = startGuard({
    path,
    args,
    directory,
    environment,
    maxMemoryBytes: settings.memoryMb === undefined ? null : settings.memoryMb * mebibyte,
    maxOutputBytes: (settings.outputMb ?? defaultOutputMb) * mebibyte,
  })
  const read = settings.progress === undefined ? undefined : progressReader(settings.progress)
  let unread: { error: unknown } | undefined
  const texts = readTexts(guard, (line) => {
    try {
      if (messages?.read(line)) return
      const fraction = read?.(line)
      if (fraction !== undefined && Number.isFinite(fraction)) context.progress(fraction)
    } catch (error) {
      // Rethrown later: nothing catches an error here, so it would end the process.
      unread ??= { error }
      endGuard(guard)
    }
  })

  let isLate = false
  const kill = () => endGuard(guard)
  const timer =
    settings.timeoutMs === undefined ? undefined : setTimeout(() => void ((isLate = true), kill()), settings.timeoutMs)
  signal.addEventListener('abort', kill, { once: true })
  try {
    const ending = await endingOf(guard)
    await messages?.finished()
    signal.throwIfAborted()
    if (unread) throw unread.error
    if (isLate) throw tookTooLong(needed, settings.timeoutMs ?? 0)
    if (messages?.failure) throw messages.failure
    if (ending?.exitCode !== 0) throw failureOf(needed, ending, texts.stderr(), settings)
    return { stdout: texts.stdout() }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', kill)
    kill()
  }
}

/** Of the host's variables, only those that locate programs. HOME and TMPDIR are removed with the run's folder. */
function cleanEnvironment(directory: string): Record<string, string> {
  const kept = ['PATH', ...(process.platform === 'win32' ? ['SystemRoot', 'ComSpec', 'PATHEXT'] : [])]
  const environment = { LANG: 'C.UTF-8', HOME: directory, TMPDIR: directory, TEMP: directory, TMP: directory }
  return Object.assign(
    environment,
    Object.fromEntries(kept.map((name) => [name, process.env[name] ?? (name === 'PATH' ? delimiter : '')])),
  )
}

function startGuard(order: GuardOrder): ChildProcess {
  const guard = spawn(process.execPath, [installedScript('core/engine/program/guard.js')], {
    // Electron behaves like Node only with this variable.
    env: { ...order.environment, ELECTRON_RUN_AS_NODE: '1' },
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
    windowsHide: true,
  })
  // Stdin stays open: when it closes, the guard knows that this process has ended.
  guard.stdin?.on('error', () => {})
  guard.stdin?.write(`${JSON.stringify(order)}\n`)
  return guard
}

function readTexts(guard: ChildProcess, onLine: (line: string) => void) {
  const texts = { stdout: '', stderr: '' }
  const outLines = lineReader(onLine)
  const errorLines = lineReader(onLine)
  guard.stdout
    ?.setEncoding('utf8')
    .on('data', (text: string) => {
      if (texts.stdout.length < mostStdout) texts.stdout = (texts.stdout + text).slice(0, mostStdout)
      outLines(text)
    })
    // The last line may lack a line break.
    .on('close', () => outLines('\n'))
  guard.stderr
    ?.setEncoding('utf8')
    .on('data', (text: string) => {
      texts.stderr = (texts.stderr + text).slice(-mostStderr)
      errorLines(text)
    })
    .on('close', () => errorLines('\n'))
  return { stdout: () => texts.stdout, stderr: () => texts.stderr }
}

/** Waits until the guard has ended and its pipes are closed. `undefined`: the guard was killed, too. */
async function endingOf(guard: ChildProcess): Promise<ProgramEnding | undefined> {
  let text = ''
  const pipe = guard.stdio[3] as Readable
  pipe.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk))
  pipe.on('error', () => {})
  // A program that left the group may keep the pipes open forever; by then, the others' output has been read.
  const closePipes = () => void (guard.stdout?.destroy(), guard.stderr?.destroy())
  let timer: NodeJS.Timeout | undefined
  guard.once('exit', () => {
    // The guard does this itself, unless it was killed.
    killGroup(guard.pid)
    timer = setTimeout(() => setImmediate(closePipes), closingMs)
  })
  try {
    await once(guard, 'close')
  } catch (error) {
    throw internalError(error)
  } finally {
    clearTimeout(timer)
  }
  return text === '' ? undefined : (JSON.parse(text) as ProgramEnding)
}

function endGuard(guard: ChildProcess): void {
  guard.stdin?.destroy()
  // Once the guard has exited, its group is gone, and another may have the same id.
  if (guard.exitCode === null && guard.signalCode === null) killGroup(guard.pid)
}

function killGroup(guardId: number | undefined): void {
  if (guardId === undefined || process.platform === 'win32') return
  try {
    process.kill(-guardId, 'SIGKILL')
  } catch {
    // The group no longer exists.
  }
}

function failureOf(
  { name }: NeededProgram,
  ending: ProgramEnding | undefined,
  stderr: string,
  { badInput: clients, permanent }: Settings,
): StemworkError {
  const how = howItEnded(ending)
  const cause = new Error(`The program ${name} ${how}. The end of its stderr: ${stderr.trim() || '(nothing)'}`)
  const details = { program: name, exitCode: ending?.exitCode ?? null, signal: ending?.signal ?? null }
  if (ending?.broke === 'memory' || ending?.broke === 'output')
    return new StemworkError(
      'INTERNAL_ERROR',
      `The program that worked on the job needed more ${ending.broke === 'memory' ? 'memory' : 'disk space'} than it ` +
        'may have and would do so again: the input is damaged or far too large. Send another copy of it.',
      { details, cause },
    )
  const matches = (rules: Settings['badInput']) =>
    [rules ?? []].flat().some((rule: ProgramFailure) => {
      if (rule instanceof RegExp) return stderr.search(rule) >= 0
      return rule === (typeof rule === 'number' ? ending?.exitCode : ending?.signal)
    })
  if (matches(clients))
    return badInput(
      'decode_failed',
      'The file cannot be processed: it is damaged, or of a kind that this workflow does not read. Send another copy ' +
        'of it, or convert it to another format.',
      cause,
    )
  const error = internalError(cause, details)
  return matches(permanent) ? new StemworkError(error.code, error.message, { details, cause }) : error
}

function howItEnded(ending: ProgramEnding | undefined): string {
  if (!ending) return 'was killed together with its guard'
  if (ending.startError !== null) return `could not be started (${ending.startError})`
  if (ending.broke === 'memory') return 'held more memory than `memoryMb` allows'
  if (ending.broke === 'output') return 'wrote more than `outputMb` allows'
  return ending.signal === null ? `ended with exit code ${ending.exitCode}` : `was ended by ${ending.signal}`
}

function tookTooLong({ name }: NeededProgram, timeoutMs: number): StemworkError {
  return new StemworkError(
    'TIMEOUT',
    `The job was stopped because the program ${name} ran longer than ${timeoutMs / 1000} s. Send a shorter file, or ` +
      'ask the operator to raise the limit.',
  )
}
