import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, rmdir, stat } from 'node:fs/promises'
import { basename, extname, join, resolve } from 'node:path'
import { badInput, StemworkError } from '../core/engine/errors.js'
import { fetchInput } from '../core/engine/fetch/fetch-input.js'
import type { InputFile, WorkResult } from '../core/engine/ports/runner.js'
import { processRunner } from '../core/engine/runner/process-runner.js'
import { outputFormats } from '../core/separation/encode/output-format.js'
import { type StemName, stemNames } from '../core/separation/stems.js'
import { requireModel } from '../core/separation/models/index.js'
import { type StemsSettings, stemsWorkflow, stemsWorkflowOf } from '../core/separation/workflow/stems-workflow.js'
import type { Workflow } from '../core/engine/workflow/workflow.js'
import { type Command, type CommandInput, exitStatus, firstPositional, textOf, UsageError } from './command.js'
import { onInterruption } from './interruption.js'
import { separationCommandOptions, separationSettings } from './model-options.js'
import { duration, ProgressLine } from './progress-line.js'

const maxDownloadBytes = 8 * 1024 ** 3
/** Limits protect a service from strangers; here, the user owns both file and machine. */
const maxAudioSeconds = 1_000_000

export const separateCommand: Command = {
  usage: 'separate <file or url> [options]',
  description:
    'Separates a song into vocals.wav and accompaniments.wav (stereo, 44.1 kHz), which add up to the mixture. Nothing leaves this machine.',
  positionals: { min: 1, max: 1 },
  options: {
    output: {
      type: 'string',
      short: 'o',
      value: 'dir',
      help: 'Folder for the files. Default: "<name of the song>-stems" in this folder.',
    },
    format: {
      type: 'string',
      value: outputFormats.join('|'),
      help: 'WAV with 16 (default) or 24 bits or floats, FLAC with 16 or 24 bits, or MP3.',
    },
    stems: {
      type: 'string',
      value: 'list',
      help: 'Stems to write, separated by commas. Default: vocals,accompaniments; others need a model that has them.',
    },
    ...separationCommandOptions,
    json: { type: 'boolean', help: 'Print one JSON object with the result or the error on stdout.' },
    'allow-private-inputs': { type: 'boolean', help: 'Allow a URL on this machine or its network.' },
  },
  notes:
    'Reads WAV, AIFF, FLAC, MP3, M4A/AAC, Ogg Vorbis and Opus.\nExit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C.',
  async run(input, terminal) {
    const json = input.values.json === true
    const request = requestOf(input)
    const interruption = onInterruption((status) => process.exit(status))
    const progress = new ProgressLine(terminal.stderr)
    try {
      const report = await separateSong(request, interruption.signal, progress)
      progress.clear()
      terminal.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : summary(report))
      return exitStatus.done
    } catch (error) {
      progress.clear()
      const status = interruption.status()
      if (status !== undefined) {
        terminal.stderr.write('Stopped; unfinished files were removed.\n')
        return status
      }
      if (!json || !StemworkError.is(error)) throw error
      const { code, reason = null, message } = error
      terminal.stdout.write(`${JSON.stringify({ error: { code, reason, message } }, null, 2)}\n`)
      return exitStatus.failed
    } finally {
      interruption.release()
    }
  },
}

interface SeparationRequest {
  source: string
  isUrl: boolean
  folder: string
  settings: StemsSettings & { model?: string }
  /** Undefined: vocals and accompaniments. */
  stems: StemName[] | undefined
  allowPrivate: boolean
}

interface SeparationReport {
  input: string
  outputs: Record<string, string>
  /** Facts from the workflow: length, clipped samples, timings, model. */
  details: Record<string, unknown>
  /** Length of the audio. */
  seconds: number
  wallSeconds: number
  /** Seconds of audio for each second of work. */
  speed: number
}

function requestOf(input: CommandInput): SeparationRequest {
  const source = firstPositional(input)
  const isUrl = /^[a-z][a-z0-9+.-]+:\/\//i.test(source)
  const formatText = textOf(input, 'format')
  const format = outputFormats.find((name) => name === formatText)
  if (formatText !== undefined && !format)
    throw new UsageError(`--format must be one of ${outputFormats.join(', ')}, not "${formatText}".`)
  return {
    source,
    isUrl,
    folder: resolve(textOf(input, 'output') ?? `${songName(source, isUrl)}-stems`),
    settings: { ...separationSettings(input), format },
    stems: stemsOf(input),
    allowPrivate: input.values['allow-private-inputs'] === true,
  }
}

function stemsOf(input: CommandInput): StemName[] | undefined {
  return textOf(input, 'stems')
    ?.split(',')
    .map((text) => {
      const stem = stemNames.find((name) => name === text.trim())
      if (stem) return stem
      throw new UsageError(`--stems accepts ${stemNames.join(', ')}, not "${text}".`)
    })
}

function workflowOf({ settings, stems }: SeparationRequest): Workflow {
  if (!stems) return stemsWorkflow(settings)
  return stemsWorkflowOf({
    id: 'separate',
    name: 'Separate',
    description: 'The stems that were asked for.',
    stems: [...new Set(stems)],
    ...settings,
  })
}

function songName(source: string, isUrl: boolean): string {
  const path = isUrl && URL.canParse(source) ? new URL(source).pathname.replace(/%20/g, ' ') : source
  return basename(path, extname(path)).replace(/[^\p{L}\p{N}._ -]/gu, '_') || 'song'
}

async function separateSong(
  request: SeparationRequest,
  signal: AbortSignal,
  progress: ProgressLine,
): Promise<SeparationReport> {
  const startedAt = performance.now()
  const local = request.isUrl ? undefined : await localFile(request.source)
  if (request.settings.model !== undefined) await requireModel(request.settings.model)
  const workflow = workflowOf(request)
  const firstMade = await mkdir(request.folder, { recursive: true })
  // In the folder of the results, so that a finished file only needs to be renamed.
  const directory = await mkdtemp(join(request.folder, '.unfinished-'))
  const removeAtOnce = () => rmSync(directory, { recursive: true, force: true })
  process.once('exit', removeAtOnce)
  const runner = processRunner({ resolve: () => workflow })
  let outputs: Record<string, string> | undefined
  try {
    const input = local ?? (await download(request, join(directory, 'input'), signal, progress))
    signal.throwIfAborted()
    const result = await runner.run(
      {
        jobId: 'separate',
        workflow: workflow.id,
        module: workflow.module?.url ?? null,
        settings: workflow.module?.settings ?? null,
        // The workflow requires a URL, but it reads the local file.
        params: { inputUrl: request.isUrl ? request.source : 'http://localhost/' },
        inputs: { inputUrl: input },
        directory,
        limits: { maxAudioSeconds },
      },
      { signal, onProgress: ({ progress: fraction }) => progress.show('Separating', fraction) },
    )
    signal.throwIfAborted()
    outputs = await publish(result, request.folder)
    return reportOf(request, result, outputs, (performance.now() - startedAt) / 1000)
  } finally {
    await runner.close()
    await rm(directory, { recursive: true, force: true })
    process.off('exit', removeAtOnce)
    // A new folder is removed after a failure, unless it contains something else by now.
    if (!outputs && firstMade) await rmdir(request.folder).catch(() => undefined)
  }
}

async function localFile(path: string): Promise<InputFile> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new StemworkError(
      'NOT_FOUND',
      error.code === 'ENOENT' ? `There is no file "${path}".` : `"${path}" cannot be read: ${error.message}.`,
      { cause: error },
    )
  })
  if (!stats.isFile()) throw badInput('unsupported_format', `"${path}" is not a file. Name one audio file.`)
  return { path: resolve(path), bytes: stats.size }
}

async function download(
  { source, allowPrivate }: SeparationRequest,
  path: string,
  signal: AbortSignal,
  progress: ProgressLine,
): Promise<InputFile> {
  progress.show('Downloading', 0)
  const { bytes } = await fetchInput(source, path, {
    signal,
    maxBytes: maxDownloadBytes,
    policy: { allowPrivate, detail: true },
  })
  return { path, bytes }
}

async function publish(result: WorkResult, folder: string): Promise<Record<string, string>> {
  const outputs: Record<string, string> = {}
  for (const [name, { path, fileName }] of Object.entries(result.outputs)) {
    outputs[name] = join(folder, fileName)
    await rename(path, outputs[name])
  }
  return outputs
}

function reportOf(
  { source }: SeparationRequest,
  { details }: WorkResult,
  outputs: Record<string, string>,
  wallSeconds: number,
): SeparationReport {
  const seconds = Number(details.seconds)
  return {
    input: source,
    outputs,
    seconds,
    wallSeconds: round(wallSeconds),
    speed: round(seconds / wallSeconds),
    details,
  }
}

function summary({ outputs, seconds, wallSeconds, speed, details }: SeparationReport): string {
  const clipped = Number(details.clippedSamples)
  const files = Object.values(outputs).map((path) => `${path}\n`)
  const warning =
    clipped > 0 ? `${clipped} samples were too loud for integers and were clipped; --format 32f keeps them.\n` : ''
  const others = Array.isArray(details.warnings) ? details.warnings.map((text) => `${text}\n`) : []
  const hint = typeof details.hint === 'string' ? `${details.hint}\n` : ''
  const time = `${duration(seconds)} of audio in ${duration(wallSeconds)} (${speed} x real time).\n`
  return `${files.join('')}${warning}${others.join('')}${time}${hint}`
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
