import { z } from 'zod'
import type { OutputFormat } from './output-format.js'

/** The param `format` of a job: one of these, or the usual one. */
export function formatParam(formats: readonly OutputFormat[], usual: OutputFormat) {
  return z
    .enum(formats, { error: `expected one of ${formats.join(', ')}` })
    .optional()
    .meta({ default: usual })
}
