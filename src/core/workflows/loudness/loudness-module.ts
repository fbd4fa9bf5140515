import { writeFile } from 'node:fs/promises'
import { badInput } from '../../engine/errors.js'
import type { StageContext, Workflow } from '../../engine/workflow/workflow.js'
import type { AudioStream } from '../../media/dsp/audio-stream.js'
import { formatTable, type OutputFormat } from '../../media/encode/output-format.js'
import { songTags } from '../../media/tags/song-tags.js'
import { type AudioSettings, withAllFormats } from '../audio-settings.js'
import { openInput } from '../open-input.js'
import { edited } from '../../media/dsp/edits.js'
import { fitted, writeAudio } from '../../media/encode/write-audio.js'
import { loudnessPicture } from './loudness-picture.js'
import { defineLoudness, type LoudnessParams, usualCeiling } from './loudness-workflow.js'
import {
  loudnessFigures,
  loudnessReport,
  type MeasuredLoudness,
  measureLoudness,
} from '../../media/loudness/measure-loudness.js'
import type { Loudness } from '../../media/loudness/loudness-meter.js'

/** The workflow as the child process loads it. */
export default function loudnessModule(settings: unknown): Workflow {
  return defineLoudness(withAllFormats(settings), (checked) => (context) => run(context, checked))
}

async function run(context: StageContext<LoudnessParams, 'inputUrl'>, settings: AudioSettings): Promise<void> {
  const { inputs, params, signal } = context
  const { normalizeTo, picture, format = settings.format ?? '16' } = params
  let passes = normalizeTo === undefined ? 1 : 2
  const open = (pass: number) =>
    openInput(context, inputs.inputUrl.path, settings.decoders, (fraction) =>
      context.progress((pass + fraction) / passes),
    )

  const stream = await open(0)
  const { sampleRate, channelCount } = fitted(stream, format)
  // A mix to two channels has another loudness, and a lower rate other peaks.
  const isConverted =
    normalizeTo !== undefined && (channelCount !== stream.channelCount || sampleRate !== stream.sampleRate)
  if (isConverted) passes++
  const loudness = await measureLoudness(stream, signal)
  if (loudness.seconds === 0)
    throw badInput('no_audio', 'The file holds no audio. Send a file with at least a few milliseconds of sound.')
  const details: Record<string, unknown> = {
    seconds: loudness.seconds,
    sampleRate: stream.sampleRate,
    loudness: loudnessFigures(loudness),
  }
  const warnings = [...(stream.warnings ?? []), ...silenceText(loudness)]
  if (normalizeTo !== undefined) {
    const written = await writeNormalized(context, settings, {
      loudness: isConverted ? await measureLoudness(fitted(await open(1), format), signal) : loudness,
      target: normalizeTo,
      stream: fitted(await open(passes - 1), format),
      format,
    })
    details.gainDb = Math.round(written.gainDb * 100) / 100
    details.clippedSamples = written.clippedSamples
    warnings.push(...written.warnings)
  }
  const report = { ...loudnessReport(loudness, stream), ...(warnings.length > 0 ? { warnings } : {}) }
  await writeFile(context.outputPath('report'), `${JSON.stringify(report)}\n`)
  if (picture) await writeFile(context.outputPath('picture'), loudnessPicture(loudness, loudness.seconds))
  for (const [name, value] of Object.entries(details)) context.detail(name, value)
  if (warnings.length > 0) context.detail('warnings', warnings)
}

/** Why there is no integrated loudness; empty if there is one. */
function silenceText({ integrated, seconds }: MeasuredLoudness): string[] {
  if (Number.isFinite(integrated)) return []
  return seconds < 0.4
    ? ['The audio is shorter than 400 ms, for which no integrated loudness is defined.']
    : ['Nothing in the audio is louder than -70 LUFS, so it has no integrated loudness.']
}

/**
 * @param loudness that of `stream`, which the format can store
 * @param target in LUFS
 */
async function writeNormalized(
  context: StageContext<LoudnessParams, 'inputUrl'>,
  settings: AudioSettings,
  {
    loudness,
    target,
    stream,
    format,
  }: { loudness: MeasuredLoudness; target: number; stream: AudioStream; format: OutputFormat },
) {
  const { inputs, params, signal } = context
  const { ceiling = usualCeiling, keepTags = settings.keepTags ?? true } = params
  const { gainDb, isLimitedByPeak } = normalization(loudness, target, ceiling)
  const tags = keepTags ? await songTags(inputs.inputUrl) : undefined
  const { clippedSamples } = await writeAudio(edited(stream, { gainDb }), context.outputPath('normalized'), {
    format,
    tags: tags?.whole ?? {},
    dither: true,
    signal,
  })
  if (tags?.song !== undefined)
    context.downloadName('normalized', `${tags.song} (${target} LUFS).${formatTable[format].extension}`)
  const limitText =
    `Peaks prevent ${target} LUFS: the audio has ${(loudness.integrated + gainDb).toFixed(1)} LUFS at a ` +
    `true peak of ${ceiling} dBTP.`
  return { gainDb, clippedSamples, warnings: [...(isLimitedByPeak ? [limitText] : []), ...(tags?.warnings ?? [])] }
}

/**
 * Finds the gain that brings audio to a loudness without its true peak exceeding a ceiling. Nothing is compressed:
 * audio with loud peaks stays below the target. Silence is unchanged.
 *
 * @param target LUFS
 * @param ceiling dBTP
 * @returns `isLimitedByPeak` says whether the ceiling leaves the audio quieter than the target
 */
function normalization({ integrated, truePeak }: Loudness, target: number, ceiling: number) {
  if (!Number.isFinite(integrated)) return { gainDb: 0, isLimitedByPeak: false }
  const wanted = target - integrated
  const most = ceiling - truePeak
  return { gainDb: Math.min(wanted, most), isLimitedByPeak: most < wanted }
}
