import { mkdir, rename } from 'node:fs/promises'
import { basename, dirname, join, parse, resolve } from 'node:path'
import { StemworkError } from '../../../core/engine/errors.js'
import { modelInfo } from '../../../core/models/index.js'
import { nearest } from '../../../core/engine/workflow/nearest.js'
import { findInputs } from '../../files/batch-inputs.js'
import { type Command, CommandInput, type Terminal, UsageError } from '../../command.js'
import { runInForeground } from '../../files/foreground-run.js'
import { makeFolder, refuseInput, requirePath, unfinishedFolder } from '../../files/local-file.js'
import type { ProgressLine } from '../../terminal/progress-line.js'
import { setupCodes } from '../../files/separate-batch.js'
import { separateSong } from '../../files/separate-song.js'
import { type SeparationChoice, separationChoice } from '../../files/separation-request.js'
import { workErrorText } from '../../terminal/system-error.js'
import { audioSeparator } from './audio-separator.js'
import { demucs } from './demucs.js'
import { optionOf, type OtherOption, type OtherProgram, type OtherRequest } from './other-program.js'

const programs: readonly OtherProgram[] = [demucs, audioSeparator]
const names = programs.map(({ name }) => name)

/** Returns the command for the program that the arguments begin with, or one that explains `as`. */
export function asCommand(argv: readonly string[] = []): Command {
  const [name] = argv
  const program = programs.find((one) => one.name === name)
  return {
    usage: `as ${program?.name ?? names.join('|')} <files ...> [its options]`,
    description:
      'Understands a command of demucs or audio-separator and writes the same tree of files. An option that has no ' +
      'counterpart is refused, with the nearest one that has.',
    positionals: { min: 2, max: Infinity },
    options: Object.fromEntries(
      Object.entries(program?.options ?? {}).map(([option, meaning]) => [option, optionOf(meaning)]),
    ),
    notes: 'For example: stemwork as demucs --two-stems=vocals song.mp3',
    async run(input, terminal) {
      if (program) return await runAs(program, input, terminal)
      const [given = ''] = input.positionals
      const meant = nearest(given, names)
      throw new UsageError(
        `stemwork as knows ${names.join(' and ')}, not "${given}".${meant ? ` Did you mean ${meant}?` : ''}`,
      )
    },
  }
}

async function runAs(program: OtherProgram, input: CommandInput, terminal: Terminal): Promise<number> {
  const request = requestOf(program, input)
  const [, ...sources] = input.positionals
  const model = await modelOf(program, request)
  request.separate.model = model.name
  request.separate.format = request.format.kind
  request.separate.stems ??= model.stems.join(',')
  const choice = separationChoice(new CommandInput(request.separate))
  for (const source of sources) await requirePath(source)
  const { inputs, unreadable } = await findInputs(sources, {
    outputFolder: resolve(request.folder),
    isResult: () => false,
    ffmpeg: false,
  })
  if (inputs.length === 0) throw new UsageError(`There are no audio files in ${sources.join(', ')}.`)
  const taken = new Set<string>()
  const songs = inputs.map((song) => ({ ...song, targets: targetsOf(program, request, choice, song.path, taken) }))
  return await runInForeground(false, terminal, async (signal, progress) => {
    const failures = unreadable.map(({ input: path, message }) => `\n  ${path}: ${message}`)
    const total = inputs.length + failures.length
    for (const { path, shown, targets } of songs) {
      try {
        const paths = await separateAs(request, choice, path, targets, signal, progress)
        progress.clear()
        terminal.stdout.write(paths.map((each) => `${each}\n`).join(''))
      } catch (error) {
        signal.throwIfAborted()
        if (total === 1 || !StemworkError.is(error) || setupCodes.includes(error.code)) throw error
        failures.push(`\n  ${shown}: ${workErrorText(error)}`)
      }
    }
    if (failures.length > 0)
      throw new StemworkError('BAD_INPUT', `${failures.length} of ${total} files failed:${failures.join('')}`)
    return { json: null, text: '' }
  })
}

/** @throws UsageError for an option without a counterpart, naming the nearest */
function requestOf({ options, start }: OtherProgram, input: CommandInput): OtherRequest {
  const request = start()
  for (const [name, value] of Object.entries(input.values)) {
    const option = options[name]
    if (option && value !== undefined) take(option, name, String(value), request)
  }
  return request
}

function take(option: OtherOption, name: string, value: string, request: OtherRequest): void {
  if ('does' in option) return option.does(request, value)
  if ('isOfNoEffect' in option || ('only' in option && option.only.includes(value))) return
  const given = option.value === undefined ? `--${name}` : `--${name} ${value}`
  throw new UsageError(`${given} has no counterpart. Nearest: ${option.instead}.`)
}

/** The corresponding model here, with the stems that it writes. */
async function modelOf(
  { models }: OtherProgram,
  request: OtherRequest,
): Promise<{ name: string; stems: readonly string[] }> {
  const name = Object.hasOwn(models, request.model) ? (models[request.model] ?? '') : request.model
  const info = await modelInfo(name).catch(() => undefined)
  if (!info) {
    const known = Object.keys(models).length > 0 ? Object.keys(models) : ['htdemucs']
    const meant = nearest(request.model, known) ?? known[0]
    throw new UsageError(
      `The model ${request.model} has no counterpart. Nearest: ${meant}. Others: ` +
        `${known.filter((one) => one !== meant).join(', ') || '"stemwork models list" names them'}.`,
    )
  }
  // The folder and files are named after the model, not after a manifest's path.
  if (request.model.endsWith('.json')) request.model = basename(request.model, '.json')
  return { name, stems: info.stems.length === 1 ? ['vocals', 'accompaniments'] : info.stems }
}

/** Paths for a song's stems. @param taken paths of this run, which no other result may overwrite */
function targetsOf(
  program: OtherProgram,
  request: OtherRequest,
  choice: SeparationChoice,
  source: string,
  taken: Set<string>,
): Record<string, string> {
  const { name, ext } = parse(source)
  const track = { name, extension: ext.slice(1) }
  const written = choice.stems.filter((stem) => isWanted(request, program.stemName(stem)))
  if (written.length === 0)
    throw new UsageError(
      `The model has no stem "${request.only}". It has ` +
        `${choice.stems.map((stem) => program.stemName(stem)).join(', ')}.`,
    )
  const targets = Object.fromEntries(
    written.map((stem) => [stem, join(request.folder, program.pathOf(request, track, program.stemName(stem)))]),
  )
  for (const target of Object.values(targets)) {
    if (taken.has(target)) throw new UsageError(`Two results would be written to ${target}. Give each its own name.`)
    taken.add(target)
  }
  return targets
}

async function separateAs(
  request: OtherRequest,
  choice: SeparationChoice,
  source: string,
  targets: Record<string, string>,
  signal: AbortSignal,
  progress: ProgressLine,
): Promise<string[]> {
  for (const target of Object.values(targets)) await refuseInput(source, target)
  await makeFolder(request.folder)
  const unfinished = await unfinishedFolder(resolve(request.folder), '.unfinished-')
  try {
    const song = { ...choice, source, isUrl: false, folder: unfinished.path, allowPrivate: false }
    const { outputs } = await separateSong(song, signal, progress)
    for (const [stem, target] of Object.entries(targets)) {
      await mkdir(dirname(target), { recursive: true })
      await rename(outputs[stem] ?? '', target)
    }
    return Object.values(targets)
  } finally {
    await unfinished.remove()
  }
}

function isWanted({ only }: OtherRequest, name: string): boolean {
  return only === undefined || only.toLowerCase() === name.toLowerCase()
}
