import { z } from 'zod'
import { missingPackage } from './available-formats.js'
import { type OutputFormat, outputFormats } from './output-format.js'

/** The param `format` of a job: one of these, or that which is usual. What it refuses names the package that a format lacks. */
export function formatParam(formats: readonly OutputFormat[], usual: OutputFormat) {
  return z
    .enum(formats, { error: ({ input }) => formatIssue(input, formats) })
    .optional()
    .meta({ default: usual })
}

function formatIssue(input: unknown, formats: readonly OutputFormat[]): string {
  const choices = `expected one of ${formats.join(', ')}`
  const known = outputFormats.find((format) => format === input)
  const missing = known && missingPackage(known)
  return missing
    ? `${choices}; "${known}" needs the package ${missing}, which is not installed in this service (npm install ${missing})`
    : choices
}
