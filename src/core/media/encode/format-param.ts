import { z } from 'zod'
import { givenWords } from '../../engine/workflow/issue-words.js'
import { formatTable, type OutputFormat } from './output-format.js'

/** The param `format` of a job: one of `formats`; default: `usual`. @param text says what has this format */
export function formatParam(formats: readonly OutputFormat[], usual: OutputFormat, text: string) {
  return z
    .enum(formats, { error: ({ input }) => `expected one of ${formats.join(', ')}${givenWords(input)}` })
    .optional()
    .meta({ title: 'File format', default: usual, 'x-labels': formats.map((format) => formatTable[format].label) })
    .describe(`${text} ${formats.map((format) => `\`${format}\` is ${formatTable[format].label}`).join(', ')}.`)
}

/** The param `keepTags` of a job. @param usual its default */
export function keepTagsParam(usual = true) {
  return z
    .boolean()
    .optional()
    .meta({ title: 'Keep title, artist and cover', default: usual })
    .describe("The new files carry the song's tags (title, artist, cover, ...) and are named after it.")
}
