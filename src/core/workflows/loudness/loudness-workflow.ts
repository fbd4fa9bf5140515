import { z } from 'zod'
import { scriptFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { formatParam, keepTagsParam } from '../../media/encode/format-param.js'
import { formatFile, outputFormats } from '../../media/encode/output-format.js'
import { type AudioSettings, checkedSettings, flag, inputUrlParam, onlyInChild, range } from '../audio-settings.js'

const id = 'service/loudness'

/** Default of the highest true peak of the written audio, in dBTP. */
export const usualCeiling = -1

/** Params of the written audio, which only `normalizeTo` requests. */
const writingParams = ['ceiling', 'format', 'keepTags'] as const

/**
 * `service/loudness`: measures integrated, momentary and short-term loudness, loudness range and true peak (ITU-R
 * BS.1770-5, EBU R 128), as JSON and as a picture; with `normalizeTo` it also writes the audio at that loudness.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function loudnessWorkflow(settings: AudioSettings = {}): Workflow {
  return defineLoudness(settings, () => onlyInChild(id))
}

/** Defines the workflow with its work. */
export function defineLoudness(
  settings: unknown,
  work: (settings: AudioSettings) => Stage<LoudnessParams, 'inputUrl'>['run'],
): Workflow {
  const checked = checkedSettings(id, settings)
  const { format: usualFormat = '16' } = checked
  return defineWorkflow({
    id,
    name: 'Loudness',
    description: 'Measures loudness, loudness range and true peak (EBU R 128), and optionally normalizes.',
    params: paramsSchema(checked),
    outputs: ({ picture, normalizeTo, format = usualFormat }) => ({
      report: { fileName: 'loudness.json', contentType: 'application/json' },
      picture: picture ? { fileName: 'loudness.svg', contentType: 'image/svg+xml' } : undefined,
      normalized: normalizeTo === undefined ? undefined : formatFile('normalized', format),
    }),
    stages: [{ name: 'measure', run: work(checked) }],
    module: { url: scriptFile('core/workflows/loudness/loudness-module.js'), settings: checked },
  })
}

/** Parameters of a job. */
export type LoudnessParams = z.output<ReturnType<typeof paramsSchema>>

function paramsSchema({ decoders, keepTags, format: usualFormat = '16', formats = [...outputFormats] }: AudioSettings) {
  return z
    .strictObject({
      inputUrl: inputUrlParam(decoders),
      picture: flag(true, 'Picture of the loudness', 'Also draws the loudness over time (SVG).'),
      normalizeTo: range(-70, 0)
        .optional()
        .describe(
          'Also writes the audio with this overall loudness (LUFS): -14 is usual for streaming, -23 for broadcasts.',
        )
        .meta({ title: 'Normalize to', 'x-unit': 'LUFS' }),
      ceiling: range(-30, 0)
        .optional()
        .describe(
          'Highest true peak of the written audio (dBTP). If it would be higher, the audio stays quieter than asked.',
        )
        .meta({ title: 'Peak ceiling', default: usualCeiling, 'x-unit': 'dBTP' }),
      format: formatParam(formats, usualFormat, 'Format of the audio to write.'),
      keepTags: keepTagsParam(keepTags),
    })
    .superRefine((given, context) => {
      if (given.normalizeTo !== undefined) return
      for (const name of writingParams) {
        if (given[name] === undefined) continue
        const message = `is for the audio that normalizeTo writes; add normalizeTo, or leave ${name} out`
        context.addIssue({ code: 'custom', path: [name], message })
      }
    })
    .meta({ dependentRequired: Object.fromEntries(writingParams.map((name) => [name, ['normalizeTo']])) })
}
