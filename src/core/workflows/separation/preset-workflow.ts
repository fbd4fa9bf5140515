import { invalidOptions } from '../../engine/errors.js'
import { composeWorkflow } from '../../engine/workflow/composition.js'
import type { Workflow } from '../../engine/workflow/workflow.js'
import { type ModelPreset, modelPreset, type PresetWishes } from '../../models/presets.js'
import { type StemsSettings, stemsWorkflow } from './stems-workflow.js'

export type PresetSettings = Omit<StemsSettings, 'model' | 'ensemble' | 'allowedModels'> & PresetWishes

/**
 * `service/<preset>`: several known models that work together, as an ensemble or one after the other. Their models must
 * be pulled first: `stemwork models pull <preset>`. A chain adds up, too: `lead + backing + accompaniments = mixture`,
 * up to the rounding of its files, and its memory does not grow with the length, because its steps exchange files.
 *
 * @example
 * createEngine({ workflows: [stemsWorkflow(), presetWorkflow('lead-and-backing', { format: 'flac24' })] })
 * @throws StemworkError `INVALID_OPTIONS` for an unknown name or a wrong setting, `MODEL_UNAVAILABLE` if `commercial`
 * rules the preset out
 */
export function presetWorkflow(name: string, { commercial, ...settings }: PresetSettings = {}): Workflow {
  return workflowOfPreset(modelPreset(name, { commercial }), settings)
}

/** The workflow of a preset, whose models may also be paths of manifests and folders. */
export function workflowOfPreset(
  { name, description, models, ensemble, next }: ModelPreset,
  settings: Omit<PresetSettings, 'commercial'>,
): Workflow {
  const id = `service/${name}`
  const title = `Preset: ${name}`
  const model = models.map((each) => ({ model: each }))
  const stems: ('vocals' | 'accompaniments')[] = ['vocals', 'accompaniments']
  if (!next) return stemsWorkflow({ id, name: title, description, stems, model, ensemble, ...settings })
  const { format = '24' } = settings
  if (format === 'mp3')
    throw invalidOptions(
      `The preset ${name} separates one of its own results again, and MP3 would reduce its quality. Choose a WAV ` +
        'or FLAC format.',
    )
  const step = (stepId: string, own: object) =>
    stemsWorkflow({ id: `${id}-${stepId}`, name: title, description, stems, ...settings, format, ...own })
  return composeWorkflow({
    id,
    name: title,
    description,
    steps: {
      separate: { workflow: step('separate', { model, ensemble }), weight: models.length },
      next: { workflow: step('next', { model: next.model }), inputs: { inputUrl: 'separate.vocals' } },
    },
    outputs: {
      [next.vocals]: 'next.vocals',
      [next.accompaniments]: 'next.accompaniments',
      accompaniments: 'separate.accompaniments',
    },
  })
}
