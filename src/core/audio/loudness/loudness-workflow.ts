import { z } from 'zod'
import { packageFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { formatParam } from '../../separation/encode/format-param.js'
import { fileType, type OutputFormat, outputFormats } from '../../separation/encode/output-format.js'
import { type AudioSettings, checkedSettings, inputUrlParam, onlyInChild } from '../audio-settings.js'

const id = 'service/loudness'

/** Parameters of a job. */
export interface LoudnessParams {
  inputUrl: string
  picture: boolean
  normalizeTo?: number
  ceiling: number
  format?: OutputFormat
  keepTags?: boolean
}

/**
 * `service/loudness`: measures integrated, momentary and short-term loudness, loudness range and true peak (ITU-R BS.1770-5, EBU R 128),
 * as JSON and as a picture; with `normalizeTo` it also writes the audio at that loudness.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function loudnessWorkflow(settings: AudioSettings = {}): Workflow {
  return defineLoudness(settings, () => onlyInChild(id))
}

/** Defines the workflow with its work. */
export function defineLoudness(
  settings: unknown,
  work: (settings: AudioSettings) => Stage<LoudnessParams>['run'],
): Workflow {
  const checked = checkedSettings(id, settings)
  const { format: usualFormat = '16', formats = outputFormats } = checked
  const params: z.ZodType<LoudnessParams> = z.strictObject({
    inputUrl: inputUrlParam,
    picture: z.boolean().default(true).describe('Whether to draw the loudness over time (SVG).'),
    normalizeTo: z
      .number()
      .min(-70)
      .max(0)
      .optional()
      .describe('Integrated loudness in LUFS of the audio to write. Default: none is written.'),
    ceiling: z
      .number()
      .min(-30)
      .max(0)
      .default(-1)
      .describe(
        'True peak in dBTP that the written audio does not exceed; the audio stays quieter than requested if necessary.',
      ),
    format: formatParam(formats, usualFormat).describe('Format of the audio to write.'),
    keepTags: z.boolean().optional().describe('Whether the written audio carries the tags and the name of the input.'),
  })
  return defineWorkflow({
    id,
    name: 'Loudness',
    description: 'Measures loudness, loudness range and true peak (EBU R 128), and optionally normalises.',
    params,
    outputs: ({ picture, normalizeTo, format = usualFormat }) => ({
      report: { fileName: 'loudness.json', contentType: 'application/json' },
      picture: picture ? { fileName: 'loudness.svg', contentType: 'image/svg+xml' } : undefined,
      normalized:
        normalizeTo === undefined
          ? undefined
          : { fileName: `normalized.${fileType(format).extension}`, contentType: fileType(format).contentType },
    }),
    stages: [{ name: 'measure', run: work(checked) }],
    module: { url: packageFile('dist/core/audio/loudness/loudness-module.js'), settings: checked },
  })
}
