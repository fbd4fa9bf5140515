import type { Tracing } from '../core/engine/ports/tracing.js'
import type { CommandInput, CommandOption } from './command.js'
import { optional } from './deployment.js'

export const tracesOption: CommandOption = {
  type: 'boolean',
  inCode: 'tracing',
  help:
    'Record traces with OpenTelemetry. Set up its SDK with NODE_OPTIONS="--import <file>" (needs ' +
    '@opentelemetry/api).',
}

/** @throws StemworkError `MISSING_DEPENDENCY`. */
export async function tracingOf(input: CommandInput): Promise<Tracing | undefined> {
  if (input.values.traces !== true) return undefined
  const { openTelemetry } = await optional(['@opentelemetry/api'], () => import('../opentelemetry/index.js'))
  return openTelemetry()
}
