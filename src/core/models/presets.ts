import { invalidOptions, StemworkError } from '../engine/errors.js'
import type { EnsembleAlgorithm } from './ensemble-algorithm.js'
import { knownModels } from './known-models.js'
import type { ModelEntry } from './model-entry.js'

/** A named combination of known models. */
export interface ModelPreset {
  name: string
  description: string
  /** Models that separate the song. */
  models: readonly string[]
  /** Algorithm that combines their estimates. Default: `avg_wave`. */
  ensemble?: EnsembleAlgorithm
  /** A model that separates the vocals further, and the names of its two stems. */
  next?: { model: string; vocals: string; accompaniments: string }
}

/**
 * The presets that this version knows. Like the models, they are data; they are not yet measured with this library.
 */
export const modelPresets: readonly ModelPreset[] = [
  {
    name: 'vocals-mean',
    description: 'The mean of three strong models of two architectures: rarely worse than the best of them.',
    models: ['mel-band-roformer-kim-fp16', 'kim-vocal-2', 'voc-ft'],
  },
  {
    name: 'vocals-clean',
    description: 'As little of the instruments in the vocals as possible: the minimum of the spectra.',
    models: ['mel-band-roformer-kim-fp16', 'kim-vocal-2'],
    ensemble: 'min_fft',
  },
  {
    name: 'vocals-full',
    description: 'As much of the vocals as possible, including harmonies and word endings: the maximum of the spectra.',
    models: ['mel-band-roformer-kim-fp16', 'kim-vocal-2'],
    ensemble: 'max_fft',
  },
  {
    name: 'vocals-mit',
    description: 'The mean of two models whose cards state the MIT licence.',
    models: ['mel-band-roformer-kim-fp16', 'scnet-large'],
  },
  {
    name: 'lead-and-backing',
    description: 'The lead voice, the backing voices and the accompaniments: the vocals are separated once more.',
    models: ['mel-band-roformer-kim-fp16'],
    next: { model: 'kara', vocals: 'lead', accompaniments: 'backing' },
  },
  {
    name: 'dry-vocals',
    description: 'The vocals without their reverberation, the reverberation, and the accompaniments.',
    models: ['mel-band-roformer-kim-fp16'],
    next: { model: 'reverb-hq', vocals: 'dry', accompaniments: 'reverb' },
  },
]

/** Further requirements for presets. */
export interface PresetWishes {
  /** The licences of all its models are stated and allow commercial use. Default: false. */
  commercial?: boolean
}

/** The presets that meet the requirements. */
export function listPresets({ commercial = false }: PresetWishes = {}): readonly ModelPreset[] {
  return modelPresets.filter((preset) => !commercial || entriesOf(preset).every(isCommercial))
}

/**
 * @throws StemworkError `INVALID_OPTIONS` for an unknown name; `MODEL_UNAVAILABLE` naming the models whose licence
 * forbids commercial use or is not stated, if that is required
 */
export function modelPreset(name: string, { commercial = false }: PresetWishes = {}): ModelPreset {
  const preset = modelPresets.find((each) => each.name === name)
  if (!preset) {
    const names = modelPresets.map((each) => each.name).join(', ')
    throw invalidOptions(`There is no preset "${name}". Expected one of: ${names}.`)
  }
  const others = commercial ? entriesOf(preset).filter((entry) => !isCommercial(entry)) : []
  if (others.length > 0) {
    const reasons = others.map(({ facts }) => `${facts.name} (licence: ${facts.licence})`).join(' and ')
    throw new StemworkError(
      'MODEL_UNAVAILABLE',
      `The preset ${name} is not for commercial use: it needs ${reasons}. See: stemwork models presets --commercial`,
    )
  }
  return preset
}

/** The names of the models that a preset needs. */
export function modelsOfPreset({ models, next }: ModelPreset): string[] {
  return [...models, ...(next ? [next.model] : [])]
}

function entriesOf(preset: ModelPreset): ModelEntry[] {
  return modelsOfPreset(preset).map((name) => {
    const entry = knownModels.find(({ facts }) => facts.name === name)
    if (!entry) throw new Error(`the preset ${preset.name} names the model ${name}, which is not known`)
    return entry
  })
}

function isCommercial(entry: ModelEntry): boolean {
  return entry.isCommercial === true
}
