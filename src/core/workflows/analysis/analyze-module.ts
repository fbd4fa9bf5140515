import { writeFile } from 'node:fs/promises'
import { badInput } from '../../engine/errors.js'
import type { StageContext, Workflow } from '../../engine/workflow/workflow.js'
import type { AudioBlock, AudioStream } from '../../media/dsp/audio-stream.js'
import { speakersOf } from '../../media/dsp/stereo.js'
import { collectLevels } from '../../media/pictures/levels.js'
import { peaksJson } from '../../media/pictures/peaks-json.js'
import type { BeatTracker } from '../../media/analysis/beats/beat-tracker.js'
import { LoudnessMeter } from '../../media/loudness/loudness-meter.js'
import { loudnessFigures } from '../../media/loudness/measure-loudness.js'
import { openInput } from '../open-input.js'
import { analyzeAudio } from '../../media/analysis/analyze-audio.js'
import { type AnalyzeParams, type AnalyzeSettings, defineAnalyze } from './analyze-workflow.js'

/** The workflow as the child process loads it. */
export default function analyzeModule(settings: unknown): Workflow {
  return defineAnalyze(settings, (checked) => (context) => runAnalysis(context, checked))
}

/** @param tracker finds the beats instead of the textbook methods; the caller closes it */
export async function runAnalysis(
  context: StageContext<AnalyzeParams, 'inputUrl'>,
  { decoders }: AnalyzeSettings,
  tracker?: BeatTracker,
): Promise<void> {
  const { inputs, params, signal } = context
  const passes = params.peaks ? 2 : 1
  const open = (pass: number) =>
    openInput(context, inputs.inputUrl.path, decoders, (fraction) => context.progress((pass + fraction) / passes))
  const stream = await open(0)
  const meter = new LoudnessMeter(stream.sampleRate, speakersOf(stream))
  const analysis = await analyzeAudio({ ...stream, blocks: metered(stream, meter) }, { signal, tracker })
  if (analysis.seconds === 0)
    throw badInput('no_audio', 'The file holds no audio. Send a file with at least a few milliseconds of sound.')
  const loudness = loudnessFigures({ ...meter.finish(), seconds: analysis.seconds })
  const { warnings = [] } = stream
  const report = { ...analysis, loudness, ...(warnings.length > 0 ? { warnings } : {}) }
  await writeFile(context.outputPath('report'), `${JSON.stringify(report)}\n`)
  if (params.labels) {
    const chords = analysis.chords.map(({ name, ...times }) => ({ ...times, text: name }))
    const sections = analysis.sections.map(({ label, ...times }) => ({ ...times, text: label }))
    await writeFile(context.outputPath('chords'), labelTrack(chords))
    await writeFile(context.outputPath('sections'), labelTrack(sections))
  }
  if (params.peaks)
    await writeFile(context.outputPath('peaks'), peaksJson(await collectLevels(await open(1), { signal })))
  context.detail('seconds', analysis.seconds)
  context.detail('sampleRate', stream.sampleRate)
  context.detail('tempo', analysis.tempo)
  context.detail('key', analysis.key)
  context.detail('beats', analysis.beats.length)
  context.detail('beatsPerBar', analysis.downbeats?.beatsPerBar ?? null)
  context.detail('loudness', loudness)
  if (warnings.length > 0) context.detail('warnings', warnings)
}

async function* metered({ blocks }: AudioStream, meter: LoudnessMeter): AsyncGenerator<AudioBlock> {
  for await (const block of blocks) {
    meter.add(block.channels)
    yield block
  }
}

/** A track of labels as Audacity imports it: the start, the end and the text of each, separated by tabs. */
function labelTrack(labels: readonly { start: number; end: number; text: string }[]): string {
  return labels.map(({ start, end, text }) => `${start.toFixed(6)}\t${end.toFixed(6)}\t${text}\n`).join('')
}
