import { z } from 'zod'
import { scriptFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { formatParam, keepTagsParam } from '../../media/encode/format-param.js'
import { formatFile, type OutputFormat, outputFormats } from '../../media/encode/output-format.js'
import { type AudioSettings, checkedSettings, range } from '../audio-settings.js'

const id = 'service/practice-mix'

export type MixInput = 'inputUrl' | 'vocalsUrl' | 'accompanimentsUrl' | 'analysisUrl'

/** Parameters of a job. */
export interface MixParams extends Record<MixInput, string> {
  format?: OutputFormat
  keepTags?: boolean
  guideDb: number
  lyrics?: string
}

const mostLyrics = 20_000

/** The last step of `service/practice`: writes the files from the stems and the analysis. */
export function defineMix(
  settings: unknown,
  work: (settings: AudioSettings) => Stage<MixParams, MixInput>['run'],
): Workflow {
  const checked = checkedSettings(id, settings)
  const { format: usualFormat = '16', formats = outputFormats } = checked
  const inputs: MixInput[] = ['inputUrl', 'vocalsUrl', 'accompanimentsUrl', 'analysisUrl']
  const params: z.ZodType<MixParams> = z.strictObject({
    inputUrl: z.url(),
    vocalsUrl: z.url(),
    accompanimentsUrl: z.url(),
    analysisUrl: z.url(),
    format: formatParam(formats, usualFormat, 'Format of the accompaniments, with and without the guide.'),
    keepTags: keepTagsParam(checked.keepTags),
    guideDb: range(-60, 0)
      .default(-18)
      .describe('How loud the voice is in the file with the guide: 0 is as in the song.')
      .meta({ title: 'Level of the guide', 'x-unit': 'dB' }),
    lyrics: z
      .string()
      .max(mostLyrics)
      .optional()
      .describe(
        'The words of the song, one line for each sung line, for LRC and UltraStar files. Empty lines and headings ' +
          'such as [Chorus] separate verses. Times are rough: the sung words are not recognized.',
      )
      .meta({ title: 'Lyrics', 'x-multiline': true }),
  })
  return defineWorkflow({
    id,
    name: 'Files for practice',
    description: 'Mixes stems, and writes clicks and lyrics.',
    params,
    inputs,
    outputs: ({ format = usualFormat }) => ({
      accompaniments: formatFile('accompaniments', format),
      guide: formatFile('guide', format),
      click: { fileName: 'click.wav', contentType: 'audio/wav', optional: true },
      lyrics: { fileName: 'lyrics.lrc', contentType: 'text/plain', optional: true },
      ultrastar: { fileName: 'ultrastar.txt', contentType: 'text/plain', optional: true },
    }),
    stages: [{ name: 'mix', run: work(checked) }],
    module: { url: scriptFile('core/workflows/practice/mix-module.js'), settings: checked },
  })
}
