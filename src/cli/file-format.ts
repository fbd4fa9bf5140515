import { extname } from 'node:path'
import { fileType, type OutputFormat, outputFormats } from '../core/media/encode/output-format.js'
import { UsageError } from './command.js'

/** Width of the samples of formats that have one. */
const widths: Partial<Record<OutputFormat, number>> = { '16': 16, '24': 24, '32f': 32, flac: 16, flac24: 24 }

/**
 * The format that a file's name and the width of its samples ask for.
 *
 * @throws UsageError naming what there is
 */
export function fileFormat(path: string, bits: string | undefined): OutputFormat {
  const ending = extname(path).slice(1).toLowerCase()
  const ofEnding = outputFormats.filter((format) => fileType(format).extension === ending)
  if (ofEnding.length === 0) {
    const endings = [...new Set(outputFormats.map((format) => `.${fileType(format).extension}`))]
    throw new UsageError(`The name of the output must end with ${endings.join(', ')}, not "${path}".`)
  }
  const found = ofEnding.find((format) => bits === undefined || widths[format] === Number(bits))
  if (found) return found
  const known = ofEnding.map((format) => widths[format]).filter((width) => width !== undefined)
  throw new UsageError(
    known.length === 0
      ? `.${ending} files take no --bits.`
      : `--bits of .${ending} is one of ${known.join(', ')}, not "${bits}".`,
  )
}
