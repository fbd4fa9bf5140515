import { StemworkError } from '../engine/errors.js'
import { knownModels } from './known-models.js'
import type { ModelEntry } from './model-entry.js'

/** Name for the best model to pull, or for the best one on this machine. */
export const bestModelName = 'best'

/** Name for the model to start with. */
export const recommendedModelName = 'recommended'

/** dB of uSDR of the bundled model's vocals: whole songs that it was not trained on (docs/quality.md). */
export const bundledQuality = 3.7

/** A download that needs no planning. */
const smallBytes = 50_000_000

/** Shown wherever the bundled model made a result. */
export const betterModelHint =
  'The bundled model has basic quality. For a better one, run: stemwork models pull recommended, then use --model ' +
  'recommended.'

/** Further requirements for the best model. */
export interface BestModelWishes {
  /** Its licence is stated and allows commercial use. Default: false. */
  commercial?: boolean
  /** Faster than real time on two processor cores. Default: false. */
  fast?: boolean
}

/**
 * The name of the model with the highest quality. Quality, speed and licence are those in the registry of known models.
 *
 * @throws StemworkError `MODEL_UNAVAILABLE` if no model has all that is required
 */
export function bestModel({ commercial = false, fast = false }: BestModelWishes = {}): string {
  const found = byQuality().find(
    ({ isCommercial, speed }) => (isCommercial === true || !commercial) && (speed === 'fast' || !fast),
  )
  if (found) return found.facts.name
  const message = 'No known model meets both requirements. Drop one of them, or choose from: stemwork models list.'
  throw new StemworkError('MODEL_UNAVAILABLE', message)
}

/**
 * The entry of the model to start with: the best one that is small, not slow, and licensed for commercial use, by the
 * registry of known models.
 */
export function recommendedModel(): ModelEntry {
  const found = byQuality().find(
    ({ isCommercial, speed, files }) =>
      isCommercial === true && speed !== 'slow' && files.every(({ bytes = Infinity }) => bytes <= smallBytes),
  )
  if (!found) throw new StemworkError('MODEL_UNAVAILABLE', 'No known model is small, fast and free for commercial use.')
  return found
}

/** The known models that have a quality, the best first. */
export function byQuality(): ModelEntry[] {
  const order = ({ quality = -Infinity }: ModelEntry) => -quality
  return knownModels.filter(({ quality }) => quality !== undefined).sort((one, other) => order(one) - order(other))
}
