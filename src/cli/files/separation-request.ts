import { parse, resolve } from 'node:path'
import { outputFormats } from '../../core/media/encode/output-format.js'
import { type StemName, stemNames } from '../../core/models/stems.js'
import { modelPreset, modelsOfPreset } from '../../core/models/presets.js'
import { presetWorkflow } from '../../core/workflows/separation/preset-workflow.js'
import { type StemsSettings, stemsWorkflow } from '../../core/workflows/separation/stems-workflow.js'
import { nameInUrl } from '../../core/engine/job/download-name.js'
import type { Workflow } from '../../core/engine/workflow/workflow.js'
import { type CommandInput, UsageError } from '../command.js'
import { separationSettings } from '../workflows/model-options.js'
import { NameTemplate, safeName } from './result-names.js'

/** Settings that all songs of a command share. */
export interface SeparationChoice {
  settings: StemsSettings & { model?: string }
  stems: StemName[]
  workflow: Workflow
  /** Names of the models that must be installed. */
  models: readonly string[]
}

/** One file or URL, separated into its own folder. */
export interface SongRequest extends SeparationChoice {
  source: string
  isUrl: boolean
  folder: string
  allowPrivate: boolean
  /** Params of the workflow, besides the address of the song. */
  params?: Record<string, unknown>
}

/** Files and folders, separated into one folder with names from a template. */
export interface BatchRequest extends SeparationChoice {
  sources: readonly string[]
  folder: string
  names: NameTemplate
  watch: boolean
  /** Songs at a time. */
  jobs: number
}

const defaultStems: StemName[] = ['vocals', 'accompaniments']

/** @param threads threads of one separation, unless the user sets their number */
export function separationChoice(input: CommandInput, threads?: number): SeparationChoice {
  const format = input.oneOf(outputFormats, 'format')
  const given = separationSettings(input)
  const keepTags = !input.isOn('no-tags')
  const settings = { ...given, threads: given.threads ?? threads, format, keepTags }
  const stems = stemsOf(input)
  if (input.values.preset !== undefined) return presetChoice(input, settings)
  if (input.isOn('commercial'))
    throw new UsageError('--commercial checks the models of a preset: use it with --preset.')
  const models = settings.model === undefined ? [] : [settings.model]
  return { settings, stems: stems ?? defaultStems, workflow: workflowOf(settings, stems), models }
}

function presetChoice(input: CommandInput, settings: SeparationChoice['settings']): SeparationChoice {
  const { model, ...others } = settings
  if (model !== undefined || input.values.stems !== undefined)
    throw new UsageError('--preset chooses models and stems: leave out --model and --stems.')
  const name = input.text('preset') ?? ''
  const commercial = input.isOn('commercial')
  const models = modelsOfPreset(modelPreset(name, { commercial }))
  return { settings, stems: defaultStems, workflow: presetWorkflow(name, { ...others, commercial }), models }
}

/** @param results suffix of the results' folder, after the name of the song */
export function songPlaces(input: CommandInput, source: string, results: string) {
  const isUrl = isAddress(source)
  return {
    source,
    isUrl,
    folder: resolve(input.text('output') ?? `${songName(source, isUrl)}-${results}`),
    allowPrivate: input.isOn('allow-private-inputs'),
  }
}

/** @param processors of this machine */
export function batchRequest(input: CommandInput, processors: number): BatchRequest {
  const folder = input.text('output')
  if (folder === undefined)
    throw new UsageError(
      'Several files, a folder, --name, --jobs and --watch require a folder for the results: -o <dir>.',
    )
  const address = input.positionals.find(isAddress)
  if (address !== undefined)
    throw new UsageError(
      `Several songs must be files or folders on this machine, but "${address}" is a URL. Separate it on its own.`,
    )
  if (input.values.preset !== undefined)
    throw new UsageError('--preset takes one song at a time. Give its file alone, without --name, --jobs and --watch.')
  const jobs = input.number('jobs', { min: 1, max: 64 }) ?? 1
  const threads = jobs === 1 ? undefined : Math.max(1, Math.floor((processors - 1) / jobs))
  return {
    ...separationChoice(input, threads),
    sources: input.positionals,
    folder: resolve(folder),
    names: new NameTemplate(input.text('name') ?? '{folder}/{file} - {stem}'),
    watch: input.isOn('watch'),
    jobs,
  }
}

export function isAddress(source: string): boolean {
  return /^[a-z][a-z0-9+.-]+:\/\//i.test(source)
}

function stemsOf(input: CommandInput): StemName[] | undefined {
  const stems = input
    .text('stems')
    ?.split(',')
    .map((text) => {
      const stem = stemNames.find((name) => name === text.trim())
      if (stem) return stem
      throw new UsageError(`--stems accepts ${stemNames.join(', ')}, not "${text}".`)
    })
  return stems && [...new Set(stems)]
}

function workflowOf(settings: StemsSettings, stems: StemName[] | undefined): Workflow {
  if (!stems) return stemsWorkflow(settings)
  return stemsWorkflow({
    id: 'separate',
    name: 'Separate',
    description: 'The requested stems.',
    stems,
    ...settings,
  })
}

function songName(source: string, isUrl: boolean): string {
  return safeName(parse((isUrl ? nameInUrl(source) : source) ?? 'song').name)
}
