import { readFile, writeFile } from 'node:fs/promises'
import type { StageContext, Workflow } from '../../engine/workflow/workflow.js'
import type { MusicAnalysis } from '../../media/analysis/analyze-audio.js'
import { formatTable, type OutputFormat } from '../../media/encode/output-format.js'
import { fitted, writeAudio } from '../../media/encode/write-audio.js'
import type { AudioTags } from '../../media/tags/audio-tags.js'
import { type SongTags, songTags } from '../../media/tags/song-tags.js'
import { type AudioSettings, withAllFormats } from '../audio-settings.js'
import { openInput } from '../open-input.js'
import { clickTrack } from './click-track.js'
import { lineTimes, lyricLines } from './line-times.js'
import { lrcFile, ultraStarFile } from './lyric-files.js'
import { defineMix, type MixInput, type MixParams } from './mix-workflow.js'
import { voiceActivity } from './voice-activity.js'
import type { AudioBlock, AudioStream } from '../../media/dsp/audio-stream.js'
import { SampleWindow } from '../../media/dsp/sample-window.js'

type Context = StageContext<MixParams, MixInput>

/** The workflow as the child process loads it. */
export default function mixModule(settings: unknown): Workflow {
  return defineMix(withAllFormats(settings), (checked) => (context) => run(context, checked))
}

async function run(context: Context, settings: AudioSettings): Promise<void> {
  const { inputs, params } = context
  const format = params.format ?? settings.format ?? '16'
  const analysis = JSON.parse(await readFile(inputs.analysisUrl.path, 'utf8')) as MusicAnalysis
  const isTagged = params.keepTags ?? settings.keepTags ?? true
  const tags = isTagged ? await songTags(inputs.inputUrl) : undefined
  const song = { format, tags, found: foundTags(analysis), name: tags?.song }
  const warnings = [...(tags?.warnings ?? [])]

  const { seconds, clippedSamples } = await writeMixes(context, song)
  if (analysis.beats.length > 0) await writeClicks(context, song, analysis)
  else warnings.push('There is no click track: no beats were found.')
  if (params.lyrics !== undefined) warnings.push(...(await writeLyrics(context, song, analysis)))
  context.detail('seconds', seconds)
  context.detail('clippedSamples', clippedSamples)
  if (warnings.length > 0) context.detail('warnings', warnings)
}

interface Song {
  format: OutputFormat
  tags: SongTags | undefined
  found: Pick<AudioTags, 'bpm' | 'key'>
  /** Prefix of the files' names. */
  name: string | undefined
}

/** Tempo and key as tags have them: an integer, and the tonic with `m` for minor. */
function foundTags({ tempo, key }: MusicAnalysis): Song['found'] {
  return {
    ...(tempo ? { bpm: String(Math.round(tempo.bpm)) } : {}),
    ...(key ? { key: `${key.tonic}${key.mode === 'minor' ? 'm' : ''}` } : {}),
  }
}

/** The accompaniments without and with the guide. */
async function writeMixes(context: Context, { format, tags, found, name }: Song) {
  const { params, signal } = context
  const mixes = { accompaniments: 'accompaniments', guide: 'accompaniments with a guide' }
  const facts = { seconds: 0, clippedSamples: 0 }
  for (const [index, output] of (['accompaniments', 'guide'] as const).entries()) {
    const report = (fraction: number) => context.progress(0.1 + 0.4 * (index + fraction))
    const accompaniments = await openInput(context, context.inputs.accompanimentsUrl.path, undefined, report)
    const mixed =
      output === 'guide'
        ? mixedStreams(accompaniments, await openInput(context, context.inputs.vocalsUrl.path), params.guideDb)
        : accompaniments
    const stream = fitted(mixed, format)
    const written = await writeAudio(stream, context.outputPath(output), {
      format,
      tags: { ...tags?.ofStem(mixes[output]), ...found },
      dither: true,
      signal,
    })
    if (name !== undefined) context.downloadName(output, `${name} - ${output}.${formatTable[format].extension}`)
    facts.seconds = written.sampleCount / stream.sampleRate
    facts.clippedSamples += written.clippedSamples
  }
  return facts
}

async function writeClicks(context: Context, { tags, found, name }: Song, analysis: MusicAnalysis): Promise<void> {
  const { sampleRate, sampleCount = Math.round(analysis.seconds * sampleRate) } = await openInput(
    context,
    context.inputs.accompanimentsUrl.path,
  )
  const options = { format: '16', tags: { ...tags?.ofStem('click'), ...found }, dither: false } as const
  const { signal } = context
  await writeAudio(clickTrack(analysis, { sampleRate, sampleCount }), context.outputPath('click'), {
    ...options,
    signal,
  })
  if (name !== undefined) context.downloadName('click', `${name} - click.wav`)
}

/** @returns sentences on why no lyrics were written */
async function writeLyrics(context: Context, { format, tags, name }: Song, analysis: MusicAnalysis) {
  const phrases = await voiceActivity(await openInput(context, context.inputs.vocalsUrl.path))
  const lines = lineTimes(lyricLines(context.params.lyrics ?? ''), phrases)
  if (lines.length === 0) return ['There are no timed lyrics: no voice was found, or no words were given.']
  const guide = `guide.${formatTable[format].extension}`
  const { title, artist } = tags?.whole ?? {}
  const facts = {
    title: title ?? name,
    artist,
    seconds: analysis.seconds,
    audio: name === undefined ? guide : `${name} - ${guide}`,
  }
  await writeFile(context.outputPath('lyrics'), lrcFile(lines, facts))
  await writeFile(context.outputPath('ultrastar'), ultraStarFile(lines, facts, analysis.tempo?.bpm))
  if (name !== undefined) {
    context.downloadName('lyrics', `${name}.lrc`)
    context.downloadName('ultrastar', `${name}.txt`)
  }
  context.detail('lines', lines.length)
  return []
}

/** The sum of a stream and, at a gain, another stream of the same rate and channels. As long as the first. */
function mixedStreams(stream: AudioStream, added: AudioStream, gainDb: number): AudioStream {
  return { ...stream, blocks: summed(stream, added, 10 ** (gainDb / 20)) }
}

async function* summed(stream: AudioStream, added: AudioStream, gain: number): AsyncGenerator<AudioBlock> {
  const window = new SampleWindow(added.channelCount, 0)
  const others = added.blocks[Symbol.asyncIterator]()
  let position = 0
  for await (const { channels } of stream.blocks) {
    const end = position + channels[0]!.length
    while (window.end < end) {
      const next = await others.next()
      if (next.done) break
      window.append(next.value.channels)
    }
    const views = window.views(position, Math.min(end, window.end))
    yield { channels: channels.map((plane, channel) => plane.map((v, i) => v + gain * (views[channel]![i] ?? 0))) }
    window.dropBefore(end)
    position = end
  }
}
