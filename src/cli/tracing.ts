import { StemworkError } from '../core/engine/errors.js'
import type { Tracing } from '../core/engine/ports/tracing.js'
import type { CommandInput, CommandOption } from './command.js'

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
  try {
    const { openTelemetry } = await import('../opentelemetry/index.js')
    return openTelemetry()
  } catch (cause) {
    throw new StemworkError(
      'MISSING_DEPENDENCY',
      '--traces needs the package @opentelemetry/api, which is not installed. Run: npm install @opentelemetry/api',
      { cause },
    )
  }
}
