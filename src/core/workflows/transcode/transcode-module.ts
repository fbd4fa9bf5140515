import type { StageContext, Workflow } from '../../engine/workflow/workflow.js'
import type { AudioStream } from '../../media/dsp/audio-stream.js'
import { resample } from '../../media/dsp/resample.js'
import { stretched } from '../../media/dsp/stretch/stretched.js'
import { formatTable } from '../../media/encode/output-format.js'
import { songTags } from '../../media/tags/song-tags.js'
import { type AudioSettings, withAllFormats } from '../audio-settings.js'
import { openInput } from '../open-input.js'
import { edited, withChannels } from '../../media/dsp/edits.js'
import { defineTranscode, type TranscodeParams } from './transcode-workflow.js'
import { fitted, writeAudio } from '../../media/encode/write-audio.js'

/** The workflow as the child process loads it. */
export default function transcodeModule(settings: unknown): Workflow {
  return defineTranscode(withAllFormats(settings), (checked) => (context) => run(context, checked))
}

async function run(context: StageContext<TranscodeParams, 'inputUrl'>, settings: AudioSettings): Promise<void> {
  const { inputs, params, signal } = context
  const { format = settings.format ?? '16', sampleRate, channels, dither } = params
  const opened = await openInput(context, inputs.inputUrl.path, settings.decoders, context.progress)
  // Mixed first, so that fewer channels are resampled.
  const mixed = withChannels(opened, channels)
  const atRate = (from: AudioStream) => fitted(sampleRate === undefined ? from : resample(from, sampleRate), format)
  // Cut last where the sound stays as it is, so that the length is exact at the new rate.
  const isStretched = params.tempo !== 1 || params.semitones !== 0
  const stream = isStretched ? stretchedPart(mixed, params, atRate) : edited(atRate(mixed), params)
  const tags = (params.keepTags ?? settings.keepTags ?? true) ? await songTags(inputs.inputUrl) : undefined
  const written = await writeAudio(stream, context.outputPath('audio'), {
    format,
    tags: tags?.whole ?? {},
    dither,
    signal,
  })
  if (tags?.song !== undefined) context.downloadName('audio', `${tags.song}.${formatTable[format].extension}`)
  const { sampleCount, clippedSamples } = written
  context.detail('seconds', sampleCount / stream.sampleRate)
  context.detail('sampleRate', stream.sampleRate)
  context.detail('channels', stream.channelCount)
  context.detail('clippedSamples', clippedSamples)
  warn(context, opened.warnings, tags?.warnings)
}

/** The cut is counted in the time of the input, fades in that of the result. */
function stretchedPart(
  stream: AudioStream,
  { startSeconds, lengthSeconds, ...rest }: TranscodeParams,
  atRate: (stream: AudioStream) => AudioStream,
): AudioStream {
  return edited(atRate(stretched(edited(stream, { startSeconds, lengthSeconds }), rest)), rest)
}

function warn(context: StageContext<TranscodeParams, 'inputUrl'>, ...lists: (readonly string[] | undefined)[]): void {
  const warnings = lists.flatMap((list) => list ?? [])
  if (warnings.length > 0) context.detail('warnings', warnings)
}
