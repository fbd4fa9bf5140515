import type { Tracing } from '../../core/engine/ports/tracing.js'
import { type CommandInput, type CommandOption, flag } from '../command.js'
import { optional } from './deployment.js'

export const tracesOption: CommandOption = flag(
  'Record traces with OpenTelemetry. Set up its SDK with NODE_OPTIONS="--import <file>" (needs ' +
    '@opentelemetry/api).',
  { inCode: 'tracing' },
)

/** @throws StemworkError `MISSING_DEPENDENCY`. */
export async function tracingOf(input: CommandInput): Promise<Tracing | undefined> {
  if (!input.isOn('traces')) return undefined
  const { openTelemetry } = await optional(['@opentelemetry/api'], () => import('../../opentelemetry/index.js'))
  return openTelemetry()
}
