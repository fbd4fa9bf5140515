import type { StageContext, Workflow } from '../../engine/workflow/workflow.js'
import { formatTable } from '../../media/encode/output-format.js'
import { type SongTags, songTags } from '../../media/tags/song-tags.js'
import { withAllFormats } from '../audio-settings.js'
import { loadNetworks, separate, type Separation } from './separate.js'
import { defineStems, type StemsDefinition, type StemsParams } from './stems-workflow.js'
import { writeFile } from 'node:fs/promises'
import { analyzeAudio } from '../../media/analysis/analyze-audio.js'
import { type Decoders, openAudio } from '../../media/decode/open-audio.js'
import { openInput } from '../open-input.js'
import { collectLevels } from '../../media/pictures/levels.js'
import { peaksJson } from '../../media/pictures/peaks-json.js'
import { peaksOf, waveformOf } from './picture-outputs.js'
import type { Stencil } from '../../media/pictures/png.js'
import { waveformPicture } from '../../media/pictures/waveform-picture.js'

/** The stems workflows as the child process loads them: with the code that separates. */
export default function stemsModule(settings: unknown): Workflow {
  return defineStems(withAllFormats(settings), (definition) => ({
    separate: (context) => separateStems(context, definition),
    analyze: (context) => analyzeSong(context, definition.decoders),
    draw: (context) => drawStems(definition.stems, context),
    prepare: () => loadNetworks({ ...networkOptions(definition), model: definition.model }),
  }))
}

async function separateStems(
  context: StageContext<StemsParams, 'inputUrl'>,
  definition: StemsDefinition,
): Promise<void> {
  const { inputs, limits, params, signal, checkpoint } = context
  const { stems, overlap, shifts, batch, denoise, decoders } = definition
  const { format = definition.format ?? '16', keepTags = definition.keepTags ?? true } = params
  const tags = keepTags ? await songTags(inputs.inputUrl) : undefined
  const separation = await separate(inputs.inputUrl.path, {
    ...networkOptions(definition),
    outputs: Object.fromEntries(stems.map((stem) => [stem, context.outputPath(stem)])),
    model: params.model ?? definition.model,
    ensemble: params.model === undefined ? definition.ensemble : undefined,
    format,
    tags: tags?.ofStem,
    overlap,
    shifts,
    batch,
    denoise,
    decoders,
    maxSeconds: limits.maxAudioSeconds,
    checkpoint,
    growingPeaks: true,
    signal,
    onProgress: ({ progress }) => context.progress(progress),
  })
  if (tags?.song !== undefined)
    for (const stem of stems) context.downloadName(stem, `${tags.song} - ${stem}.${formatTable[format].extension}`)
  report(context, namesOf(tags))
  report(context, detailsOf({ ...separation, warnings: [...separation.warnings, ...(tags?.warnings ?? [])] }))
}

/** Title and artist, for players that show what they play. */
function namesOf(tags: SongTags | undefined) {
  return { title: tags?.whole.title, artist: tags?.whole.artist }
}

function report(context: StageContext<StemsParams, 'inputUrl'>, details: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(details)) if (value !== undefined) context.detail(name, value)
}

function networkOptions({ threads, provider, runtime, maxWarmBytes }: StemsDefinition) {
  return { threads, provider, runtime, maxWarmBytes }
}

function detailsOf({ timings, models, warnings, ...separation }: Separation): Record<string, unknown> {
  const { seconds, sampleRate, clippedSamples, runtime, hint, runtimeHint } = separation
  return {
    seconds,
    sampleRate,
    clippedSamples,
    timingsMs: Object.fromEntries(Object.entries(timings).map(([part, ms]) => [part, Math.round(ms)])),
    model: models.length === 1 ? models[0] : models,
    runtime,
    hint,
    runtimeHint,
    warnings: warnings.length > 0 ? warnings : undefined,
  }
}

/** Finds tempo, beats, key and chords of the song, for people who practise with its stems. */
async function analyzeSong(context: StageContext<unknown, 'inputUrl'>, decoders: Decoders | undefined): Promise<void> {
  const song = await openInput(context, context.inputs.inputUrl.path, decoders, context.progress)
  const analysis = await analyzeAudio(song, { signal: context.signal })
  await writeFile(context.outputPath('analysis'), `${JSON.stringify(analysis)}\n`)
}

const overviewSize = { width: 1800, height: 240 }
const vocalsColour: Stencil['colour'] = [209, 73, 91]
const otherColour: Stencil['colour'] = [0, 121, 140]

/** Draws the finished stems: a peak list for players and an overview picture of each, from one pass over its file. */
async function drawStems(stems: readonly string[], context: StageContext<unknown>): Promise<void> {
  for (const [index, stem] of stems.entries()) {
    const stream = await openAudio(context.outputPath(stem), { signal: context.signal })
    const levels = await collectLevels(stream, { signal: context.signal })
    const colour = stem === 'vocals' ? vocalsColour : otherColour
    await writeFile(context.outputPath(peaksOf(stem)), peaksJson(levels))
    await writeFile(context.outputPath(waveformOf(stem)), waveformPicture(levels, { ...overviewSize, colour }))
    context.progress((index + 1) / stems.length)
  }
}
