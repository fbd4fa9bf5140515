import { invalidOptions } from '../../engine/errors.js'
import { type RuntimeChoice, runtimeChoices } from './runtime.js'

/**
 * The operator's choice in the environment variable `STEMWORK_RUNTIME`; without it, `auto`.
 *
 * @throws StemworkError `INVALID_OPTIONS` for another value
 */
export function defaultRuntime(): RuntimeChoice {
  const text = process.env.STEMWORK_RUNTIME || 'auto'
  const found = runtimeChoices.find((name) => name === text)
  if (found) return found
  throw invalidOptions(`STEMWORK_RUNTIME must be one of ${runtimeChoices.join(', ')}, not "${text}".`)
}
