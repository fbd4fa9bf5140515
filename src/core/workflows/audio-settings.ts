import { z } from 'zod'
import { invalidOptions, StemworkError } from '../engine/errors.js'
import { givenWords } from '../engine/workflow/issue-words.js'
import { checkInput, firstIssueText } from '../engine/workflow/check-input.js'
import { fileExtensions } from '../media/decode/file-extensions.js'
import { outputFormats } from '../media/encode/output-format.js'

/** Settings that mean the same for every workflow that reads an audio file and may write one. */
export const audioSettingsShape = {
  format: z
    .enum(outputFormats)
    .optional()
    .describe('Format of the files unless a job chooses another. Default: `"16"`, 16-bit WAV.'),
  formats: z
    .array(z.enum(outputFormats))
    .min(1)
    .optional()
    .describe(
      'Formats that a job may choose with `params.format`. Default: those that can be written with the packages ' +
        'installed here. Name them where other machines run the jobs.',
    ),
  decoders: z
    .strictObject({ ffmpeg: z.union([z.boolean(), z.string().min(1)]).optional() })
    .optional()
    .describe(
      'Programs that may decode what the package cannot, for example FLV or WMV videos: `{ ffmpeg: true }` for the ' +
        'ffmpeg on the `PATH`, ' +
        'or its path. It runs in a process of its own, without network, with limits of memory and time. Default: none.',
    ),
  keepTags: z
    .boolean()
    .optional()
    .describe(
      "Whether results carry the input's tags (title, artist, album, track, date, genre, cover) and its name, " +
        'unless a job says otherwise. Default: true.',
    ),
}

export const audioSettingsSchema = z.strictObject(audioSettingsShape)

export type AudioSettings = z.infer<typeof audioSettingsSchema>

/** For the child: the host has checked the format, and the encoder reports a package that is missing here. */
export function withAllFormats(settings: unknown): object {
  return { ...(settings as object), formats: outputFormats }
}

/** @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong */
export function checkedSettings(workflow: string, settings: unknown): AudioSettings {
  const checked = checkInput(audioSettingsSchema, settings)
  if (checked.success) return checked.data
  const issue = firstIssueText(checked, 'settings')
  throw invalidOptions(`Workflow ${workflow}: ${issue}.`)
}

/** A workflow's stage in the host's process: only the child process loads the code that does the work. */
export function onlyInChild(workflow: string) {
  return async (): Promise<void> => {
    throw new StemworkError(
      'INTERNAL_ERROR',
      `The workflow ${workflow} only runs in a child process, because it would block the host. Use the process runner.`,
    )
  }
}

export const range = (min: number, max: number) => z.number().min(min).max(max)

/** A param that is on or off. */
export const flag = (usual: boolean, title: string, description: string) =>
  z.boolean().default(usual).describe(description).meta({ title })

/** The param `inputUrl` of a job: where the song is. */
export function inputUrlParam(decoders: { ffmpeg?: boolean | string } | undefined) {
  return (
    z
      .url({
        protocol: /^https?$/,
        error: ({ input }) =>
          input === undefined
            ? 'is missing: expected the address of the song'
            : `expected an address that begins with http:// or https://${givenWords(input)}`,
      })
      .max(8192, 'must have at most 8192 characters')
      .describe('Address of the song (http or https).')
      // For clients that check a file before they send it.
      .meta({ 'x-fileExtensions': fileExtensions(Boolean(decoders?.ffmpeg)) })
  )
}
