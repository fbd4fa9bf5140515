import { extname } from 'node:path'
import { formatTable, type OutputFormat, outputFormats } from '../../core/media/encode/output-format.js'
import { UsageError } from '../command.js'

/** The file endings of all formats, for messages. */
export const fileEndings = [...new Set(outputFormats.map((format) => `.${formatTable[format].extension}`))].join(', ')

/**
 * Returns the format for a file's extension and sample width.
 *
 * @throws UsageError naming the possible ones
 */
export function fileFormat(path: string, bits: string | undefined): OutputFormat {
  const ending = extname(path).slice(1).toLowerCase()
  const ofEnding = outputFormats.filter((format) => formatTable[format].extension === ending)
  if (ofEnding.length === 0) throw new UsageError(`The name of the output must end with ${fileEndings}, not "${path}".`)
  const found = ofEnding.find((format) => bits === undefined || formatTable[format].bits === Number(bits))
  if (found) return found
  const known = ofEnding.map((format) => formatTable[format].bits).filter((width) => width !== undefined)
  throw new UsageError(
    known.length === 0
      ? `.${ending} files take no --bits.`
      : `--bits of .${ending} is one of ${known.join(', ')}, not "${bits}".`,
  )
}
