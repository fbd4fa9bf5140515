import { analyzeWorkflow } from '../../core/workflows/analysis/analyze-workflow.js'
import { loudnessWorkflow } from '../../core/workflows/loudness/loudness-workflow.js'
import { notesWorkflow } from '../../core/workflows/notes/notes-workflow.js'
import { practiceWorkflow } from '../../core/workflows/practice/practice-workflow.js'
import { transcodeWorkflow } from '../../core/workflows/transcode/transcode-workflow.js'
import { executionProviders } from '../../core/models/session/execution-provider.js'
import { runtimeChoices } from '../../core/models/session/runtime.js'
import { outputFormats } from '../../core/media/encode/output-format.js'
import { modelInfo, requireModel } from '../../core/models/installed.js'
import { modelWords } from '../../core/models/model-words.js'
import { type StemsSettings, stemsWorkflow } from '../../core/workflows/separation/stems-workflow.js'
import type { Workflow } from '../../core/engine/workflow/workflow.js'
import { type CommandInput, type CommandOption, flag, valued } from '../command.js'

const threads = valued('n', 'Processors for a separation. Default: all but one.')

const provider = valued(
  executionProviders.join('|'),
  'What runs the network. If it is not available, the CPU is used, with a warning. Default: cpu.',
)

const runtime = valued(
  runtimeChoices.join('|'),
  'What loads the network: the native library of onnxruntime-node, or WebAssembly, which needs no other package. ' +
    'Default: STEMWORK_RUNTIME, or auto, the native library if it is there.',
)

const ffmpeg = flag(
  'Use the ffmpeg on the PATH for formats that the package cannot decode, such as FLV or WMV videos.',
  { inCode: 'decoders.ffmpeg' },
)

export const separationCommandOptions = {
  model: valued(
    'name',
    'Model to use: a name from "stemwork models list", a manifest (.json), or "best" for the best one that was ' +
      'pulled. Default: embedded.',
  ),
  threads,
  provider,
  runtime,
  ffmpeg,
} satisfies Record<string, CommandOption>

/** Command-line options of a node that runs separations. */
export const serviceModelOptions = {
  ...separationCommandOptions,
  'allowed-models': valued('name', 'A model that a job may choose with params.model.', {
    was: 'allow-model',
    multiple: true,
  }),
  'stems-4': valued(
    'model',
    'Also offer service/stems-4 (vocals, drums, bass, other) with this model, for example htdemucs.',
  ),
  beats: valued('model', 'A model that finds the beats for service/analyze: beat-this-small.'),
} satisfies Record<string, CommandOption>

export function separationSettings(
  input: CommandInput,
): Pick<StemsSettings, 'threads' | 'provider' | 'runtime' | 'decoders'> & { model?: string } {
  return {
    model: input.text('model'),
    threads: input.number('threads', { min: 1, max: 256 }),
    provider: input.oneOf(executionProviders, 'provider'),
    runtime: input.oneOf(runtimeChoices, 'runtime'),
    decoders: input.isOn('ffmpeg') ? { ffmpeg: true } : undefined,
  }
}

/**
 * The workflows of the package, as the options select and configure them.
 *
 * @param isRunHere whether child processes of this process do the work, so that the models must be installed here
 * @throws StemworkError `INVALID_OPTIONS` for a model that is not known, `MODEL_UNAVAILABLE` for a choice of jobs that
 * must be pulled first
 */
export async function packageWorkflows(input: CommandInput, isRunHere: boolean): Promise<Workflow[]> {
  const { model, ...settings } = separationSettings(input)
  const allowedModels = input.values['allowed-models'] as string[] | undefined
  const fourStemModel = input.text('stems-4')
  const beats = input.text('beats')
  if (isRunHere) {
    // A workflow whose own model is not installed is unavailable, but its name must be known.
    for (const name of [model, fourStemModel, beats]) if (name !== undefined) await modelInfo(name)
    for (const name of allowedModels ?? []) await requireModel(name)
  }
  const formats = isRunHere ? undefined : [...outputFormats]
  const modelTitles = allowedModels && Object.fromEntries(allowedModels.map((name) => [name, modelWords(name)]))
  const workflows: Workflow[] = [stemsWorkflow({ ...settings, model, allowedModels, modelTitles, formats })]
  if (fourStemModel !== undefined)
    workflows.push(stemsWorkflow({ stems: 4, ...settings, model: fourStemModel, formats }))
  const { decoders } = settings
  return [
    ...workflows,
    loudnessWorkflow({ decoders, formats }),
    transcodeWorkflow({ decoders, formats }),
    analyzeWorkflow({ decoders, beats }),
    notesWorkflow({ decoders }),
    practiceWorkflow({ ...settings, model, allowedModels, modelTitles, formats, beats }),
  ]
}
