import { z } from 'zod'
import { scriptFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { formatParam, keepTagsParam } from '../../media/encode/format-param.js'
import { formatFile, formatTable, mp3Rates, outputFormats } from '../../media/encode/output-format.js'
import { type AudioSettings, checkedSettings, flag, inputUrlParam, onlyInChild, range } from '../audio-settings.js'

const id = 'service/transcode'

/** Limited because a fade-out is held in memory. */
const mostFadeSeconds = 60
const mostSeconds = 1_000_000

/**
 * `service/transcode`: writes audio in another format, rate, number of channels or sample width, and can cut, fade and
 * amplify it, and change its tempo and its pitch.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function transcodeWorkflow(settings: AudioSettings = {}): Workflow {
  return defineTranscode(settings, () => onlyInChild(id))
}

/** Defines the workflow with its work. */
export function defineTranscode(
  settings: unknown,
  work: (settings: AudioSettings) => Stage<TranscodeParams, 'inputUrl'>['run'],
): Workflow {
  const checked = checkedSettings(id, settings)
  const { format: usualFormat = '16' } = checked
  return defineWorkflow({
    id,
    name: 'Transcode',
    description:
      'Writes audio in another format, rate, number of channels or width; cuts, fades and amplifies; changes ' +
      'tempo and pitch.',
    params: paramsSchema(checked),
    outputs: ({ format = usualFormat }) => ({ audio: formatFile('audio', format) }),
    stages: [{ name: 'transcode', run: work(checked) }],
    module: { url: scriptFile('core/workflows/transcode/transcode-module.js'), settings: checked },
  })
}

/** Parameters of a job. */
export type TranscodeParams = z.output<ReturnType<typeof paramsSchema>>

// oxlint-disable-next-line max-lines-per-function -- a table of params
function paramsSchema({ decoders, keepTags, format: usualFormat = '16', formats = [...outputFormats] }: AudioSettings) {
  const fade = range(0, mostFadeSeconds).default(0)
  return z
    .strictObject({
      inputUrl: inputUrlParam(decoders),
      format: formatParam(formats, usualFormat, 'Format of the file, including its sample width.'),
      sampleRate: z
        .number()
        .int()
        .min(8000)
        .max(192_000)
        .optional()
        .describe(
          'Samples per second: 44100 as on a CD, 48000 as in videos. Without it, that of the song. MP3 has ' +
            `${mp3Rates.join(', ')}: without it, another one if the rate of the song is not among these.`,
        )
        .meta({ title: 'Sample rate', 'x-unit': 'Hz' }),
      channels: z
        .literal([1, 2])
        .optional()
        .describe('1 (mono) or 2 (stereo). Without it, those of the song; for MP3, at most 2.')
        .meta({ title: 'Channels', 'x-labels': ['Mono', 'Stereo'] }),
      startSeconds: range(0, mostSeconds)
        .default(0)
        .describe('Everything before this second is left out.')
        .meta({ title: 'Start', 'x-unit': 's' }),
      lengthSeconds: z
        .number()
        .positive()
        .max(mostSeconds)
        .optional()
        .describe('How many seconds are kept; without it, all up to the end.')
        .meta({ title: 'Length', 'x-unit': 's' }),
      fadeInSeconds: fade
        .describe('Length of the fade from silence, in seconds.')
        .meta({ title: 'Fade in', 'x-unit': 's' }),
      fadeOutSeconds: fade
        .describe('Length of the fade to silence at the end, in seconds.')
        .meta({ title: 'Fade out', 'x-unit': 's' }),
      gainDb: range(-120, 60)
        .default(0)
        .describe(
          'Gain in dB; negative values make it quieter. Peaks beyond full scale are clipped, except in 32-bit float.',
        )
        .meta({ title: 'Gain', 'x-unit': 'dB' }),
      tempo: range(0.5, 2)
        .default(1)
        .describe(
          'Faster or slower at the same pitch: 1.25 is a quarter faster. Start and length are counted in the time of ' +
            'the song as it was, fades in that of the result.',
        )
        .meta({ title: 'Tempo', 'x-unit': 'times' }),
      semitones: range(-12, 12)
        .default(0)
        .describe('Raises the pitch by this many semitones at the same tempo; negative values lower it.')
        .meta({ title: 'Pitch', 'x-unit': 'semitones' }),
      dither: flag(true, 'Dither', 'Adds inaudible noise, so that rounding does not distort quiet passages.'),
      keepTags: keepTagsParam(keepTags),
    })
    .superRefine(({ format = usualFormat, sampleRate }, context) => {
      const { container, rates = Infinity } = formatTable[format]
      if (typeof rates === 'number' || sampleRate === undefined || rates.includes(sampleRate)) return
      const message = `${container} has no rate of ${sampleRate} Hz: expected one of ${rates.join(', ')}`
      context.addIssue({ code: 'custom', path: ['sampleRate'], message })
    })
}
