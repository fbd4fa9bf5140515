import { z } from 'zod'
import { invalidOptions } from '../../engine/errors.js'
import { scriptFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { audioSettingsShape, flag, inputUrlParam, onlyInChild, range } from '../audio-settings.js'
import { formatParam, keepTagsParam } from '../../media/encode/format-param.js'
import { formatFile, type OutputFormat, outputFormats } from '../../media/encode/output-format.js'
import { type StemName, stemNames } from '../../models/stems.js'
import { ensembleAlgorithms } from '../../models/ensemble-algorithm.js'
import { executionProviders } from '../../models/session/execution-provider.js'
import { runtimeChoices } from '../../models/session/runtime.js'
import { pictureOutputs } from './picture-outputs.js'
import { checkInput, firstIssueText } from '../../engine/workflow/check-input.js'

const modelName = z.string().min(1)
const count = z.number().int().positive()

const modelChoice = z.object({
  model: modelName,
  weight: z.number().positive().optional(),
  fromHertz: z.number().nonnegative().optional(),
  toHertz: z.number().positive().optional(),
})

const settingsShape = {
  model: z
    .union([modelName, z.array(modelChoice).min(1)])
    .optional()
    .describe(
      'Name of a model, or the path of its manifest or folder; or several, whose estimates are combined as ' +
        '`ensemble` says, with weights or ' +
        'bands of frequencies. Models other than the default must be pulled first. Default: `embedded`, the ' +
        'bundled model.',
    ),
  ensemble: z
    .enum(ensembleAlgorithms)
    .optional()
    .describe(
      'How the estimates of several models are combined: their mean, median, minimum or maximum, of the waves or ' +
        'of the spectra (`_fft`). ' +
        'Default: `avg_wave`, the weighted mean.',
    ),
  allowedModels: z
    .array(modelName)
    .min(1)
    .optional()
    .describe('Models that a job may choose with `params.model`. Default: none; such a job is rejected.'),
  modelTitles: z
    .record(modelName, z.string().min(1))
    .optional()
    .describe('Text shown to people who choose among `allowedModels`, such as quality and speed. Default: its name.'),
  threads: count.optional().describe('Threads for the network. Default: the number of processors minus one.'),
  provider: z
    .enum(executionProviders)
    .optional()
    .describe(
      'What runs the network. If it is not available, the CPU is used, and the details of the job say so. Default: ' +
        '`cpu`.',
    ),
  runtime: z
    .enum(runtimeChoices)
    .optional()
    .describe(
      'What loads the network: the native library of onnxruntime-node, WebAssembly, or the native library where it ' +
        'can be loaded (`auto`). Default: that of the environment variable `STEMWORK_RUNTIME`, or `auto`.',
    ),
  maxWarmBytes: count
    .optional()
    .describe(
      'While the child process uses more memory than this, networks of earlier jobs are closed. Default: 2 GiB.',
    ),
  overlap: range(0, 0.9)
    .optional()
    .describe("Fraction by which neighbouring segments overlap. Default: the architecture's own."),
  shifts: z
    .number()
    .int()
    .min(1)
    .max(20)
    .optional()
    .describe('Number of passes with shifted segments to average. Default: 1.'),
  batch: z.number().int().min(1).max(64).optional().describe('Segments per network run, for GPUs. Default: 1.'),
  denoise: z
    .boolean()
    .optional()
    .describe('Architecture `mdx`: averages the outputs for the mixture and for its negative. Default: false.'),
  ...audioSettingsShape,
}

export const stemsSettingsSchema = z.strictObject(settingsShape)

export type StemsSettings = z.infer<typeof stemsSettingsSchema>

const definitionSchema = z.strictObject({
  ...settingsShape,
  id: z.string().min(1),
  name: z.string().min(1),
  description: z.string().min(1),
  stems: z.array(z.enum(stemNames)).min(1),
})

/** The settings, with the workflow's id, name, description and stems. */
export type StemsDefinition = z.infer<typeof definitionSchema>

/** Params of a job as its client gives them. */
export interface StemsRequest {
  inputUrl: string
  /** Adds peaks for players and an overview picture (PNG) of each stem to the outputs. Default: false. */
  pictures?: boolean
  /** Adds tempo, beats, key and chords of the song (JSON) to the outputs. Default: false. */
  analysis?: boolean
  format?: OutputFormat
  /** Whether results carry the input's tags and its name. */
  keepTags?: boolean
  /** One of `allowedModels`. */
  model?: string
}

/** Params of a job, checked. */
export interface StemsParams extends StemsRequest {
  pictures: boolean
  analysis: boolean
}

/** A workflow that makes these stems. */
export interface StemsWorkflow<
  Id extends string = 'service/stems-vocals-accompaniment',
  Stem extends StemName = 'vocals' | 'accompaniments',
> extends Workflow<
  Id,
  StemsRequest,
  'inputUrl',
  { [Name in Stem]: string } & { [Name in `${Stem}${'Peaks' | 'Waveform'}` | 'analysis']?: string }
> {}

/** `service/stems-4`, the workflow of `stems: 4`. */
export type FourStemsWorkflow = StemsWorkflow<'service/stems-4', 'vocals' | 'drums' | 'bass' | 'other'>

const two = {
  id: 'service/stems-vocals-accompaniment',
  name: 'Stems: vocals and accompaniment',
  description: 'Separates a mixed audio track into vocals and accompaniments.',
  stems: ['vocals', 'accompaniments'],
}

const four = {
  id: 'service/stems-4',
  name: 'Stems: vocals, drums, bass and other',
  description: 'Separates a mixed audio track into vocals, drums, bass and everything else.',
  stems: ['vocals', 'drums', 'bass', 'other'],
  model: 'htdemucs',
}

/**
 * `service/stems-vocals-accompaniment`: separates a mixed audio track into `vocals.wav` and `accompaniments.wav`,
 * stereo at 44.1 kHz, of the same length as the input. With `stems: 4`, `service/stems-4`: vocals, drums, bass and the
 * rest, by a model that has these. Or a workflow of another id, for any stems of a model. It runs in a child process;
 * the host loads neither decoders nor networks.
 *
 * The default model of `stems: 4` must be pulled first, which includes accepting its terms: `stemwork models pull
 * htdemucs`.
 *
 * @example
 * stemsWorkflow({ model: 'kim-vocal-2', allowedModels: ['kim-vocal-2', 'htdemucs'] })
 * @example
 * stemsWorkflow({ stems: 4 })
 * @example
 * stemsWorkflow({
 *   id: 'service/drums',
 *   name: 'Drums',
 *   description: 'The drums of a track.',
 *   stems: ['drums'],
 *   model: 'scnet',
 * })
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function stemsWorkflow(settings?: StemsSettings): StemsWorkflow
export function stemsWorkflow(settings: StemsSettings & { stems: 4 }): FourStemsWorkflow
export function stemsWorkflow<const Id extends string, const Stem extends StemName>(
  definition: StemsDefinition & { id: Id; stems: readonly Stem[] },
): StemsWorkflow<Id, Stem>
export function stemsWorkflow(given: (StemsSettings & { stems?: 4 }) | StemsDefinition = {}): Workflow {
  const { stems, ...settings } = given
  const definition =
    stems === undefined ? { ...two, ...settings } : stems === 4 ? { ...four, ...settings } : { stems, ...settings }
  return defineStems(definition, ({ id }) => {
    const refuse = onlyInChild(id)
    return { separate: refuse, analyze: refuse, draw: refuse }
  })
}

export interface StemsWork {
  separate: Stage<StemsParams, 'inputUrl'>['run']
  /** Analyses the song. */
  analyze: Stage<StemsParams, 'inputUrl'>['run']
  /** Draws the finished stems. */
  draw: Stage<StemsParams, 'inputUrl'>['run']
  /** Loads the default model and its networks. */
  prepare?(): Promise<Record<string, unknown>>
}

/** Reading files once more is quick compared with the separation. */
const [analyzeWeight, drawWeight] = [0.05, 0.02]

export function defineStems(definition: unknown, work: (definition: StemsDefinition) => StemsWork): Workflow {
  const checked = checkInput(definitionSchema, definition)
  if (!checked.success) {
    throw invalidOptions(`Stems workflow: ${firstIssueText(checked, 'settings')}.`)
  }
  const { id, name, description, stems, format: usualFormat = '16' } = checked.data
  const { separate, analyze, draw, prepare } = work(checked.data)
  return defineWorkflow({
    id,
    name,
    description,
    params: paramsSchema(checked.data, usualFormat),
    outputs: ({ pictures, analysis, format = usualFormat }) => ({
      ...Object.fromEntries(stems.map((stem) => [stem, formatFile(stem, format)])),
      ...(pictures ? pictureOutputs(stems) : {}),
      ...(analysis ? { analysis: { fileName: 'analysis.json', contentType: 'application/json' } } : {}),
    }),
    stages: [
      { name: 'separate', run: separate },
      {
        name: 'analyze',
        weight: analyzeWeight,
        run: async (context) => (context.params.analysis ? analyze(context) : undefined),
      },
      {
        name: 'draw',
        weight: drawWeight,
        run: async (context) => (context.params.pictures ? draw(context) : undefined),
      },
    ],
    module: { url: moduleUrl, settings: checked.data },
    prepare,
  })
}

function paramsSchema(
  { formats, allowedModels, modelTitles = {}, decoders, keepTags, model: usualModel = 'embedded' }: StemsDefinition,
  usualFormat: OutputFormat,
): z.ZodType<StemsParams, StemsRequest> {
  const shape = {
    inputUrl: inputUrlParam(decoders),
    pictures: flag(
      false,
      'Pictures of the waveforms',
      'Also makes a picture (PNG) of each stem, and its peaks for players (JSON).',
    ),
    analysis: flag(
      false,
      'Tempo, key and beats',
      'Also finds tempo, beats, key and chords of the song (JSON), to practise with a click and loops.',
    ).meta({ 'x-suggested': true }),
    format: formatParam(formats ?? outputFormats, usualFormat, 'Format of the stems.'),
    keepTags: keepTagsParam(keepTags),
  }
  if (!allowedModels) return z.strictObject(shape)
  const model = z
    .enum(allowedModels)
    .optional()
    .describe('Model that separates: better ones take longer. Default: chosen by the service.')
    .meta({
      title: 'Quality',
      'x-labels': allowedModels.map((name) => modelTitles[name] ?? name),
      ...(allowedModels.some((name) => name === usualModel) ? { default: usualModel } : {}),
    })
  return z.strictObject({ ...shape, model })
}

const moduleUrl = scriptFile('core/workflows/separation/stems-module.js')
