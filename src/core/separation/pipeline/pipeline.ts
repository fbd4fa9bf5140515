import type { AudioStream } from '../dsp/audio-stream.js'
import { delayed } from './delayed.js'
import { weightedMean } from './ensemble.js'
import { estimateStems, type Estimator, type PipelineTimings, type StemBlock } from './estimation.js'
import { FloatPlanes } from '../dsp/float-planes.js'
import type { StemName, Stems } from '../stems.js'

/** An estimator and its own stream of the track, since a stream can only be read once. */
export interface PipelineMember extends Estimator {
  stream: AudioStream
  /** Relative weight in the mean over the members. Default: 1. */
  weight?: number
  /** Samples of silence before the track: shifts the segments, so that the mean averages over shifts. Default: 0. */
  delaySamples?: number
}

export interface PipelineOptions {
  /** Stems to return. Default: vocals and accompaniments. */
  outputs?: readonly StemName[]
  /** Takes the accompaniments from the models instead of subtracting the vocals from the mixture. */
  ownAccompaniments?: boolean
  signal?: AbortSignal
  /** Receives the stems in track order. They are valid until its promise resolves. */
  sink(audio: Stems): Promise<void>
  onSamples?(samplesDone: number): void
}

export interface PipelineResult {
  sampleCount: number
  timings: PipelineTimings
}

const defaultOutputs: readonly StemName[] = ['vocals', 'accompaniments']

/**
 * Separates a track with one model, or with several whose estimates are averaged, in bounded memory. The accompaniments are
 * the mixture minus the vocals, sample by sample, computed once at the end.
 *
 * @throws the signal's reason; the signal is checked between segments
 */
export async function runPipeline(
  members: readonly PipelineMember[],
  options: PipelineOptions,
): Promise<PipelineResult> {
  const { outputs = defaultOutputs, ownAccompaniments, signal, sink, onSamples } = options
  const timings: PipelineTimings = { decode: 0, dsp: 0, network: 0, write: 0 }
  const targets = targetStems(outputs, ownAccompaniments)
  const rest = new FloatPlanes()
  let sampleCount = 0
  for await (const { stems, mixture, sampleCount: blockSamples } of blocksOf(members, { targets, timings, signal })) {
    const startedAt = performance.now()
    const { vocals } = stems
    const isRest = outputs.includes('accompaniments') && !targets.includes('accompaniments') && vocals !== undefined
    const accompaniments = isRest ? rest.difference(mixture, vocals) : stems.accompaniments
    const finishedAt = performance.now()
    await sink({ ...stems, accompaniments })
    timings.dsp += finishedAt - startedAt
    timings.write += performance.now() - finishedAt
    sampleCount += blockSamples
    onSamples?.(sampleCount)
  }
  return { sampleCount, timings }
}

/** The stems that the models have to estimate for these outputs. */
export function targetStems(outputs: readonly StemName[], ownAccompaniments = false): StemName[] {
  const targets = outputs.map((stem) => (stem === 'accompaniments' && !ownAccompaniments ? 'vocals' : stem))
  return [...new Set(targets)]
}

function blocksOf(
  members: readonly PipelineMember[],
  context: Parameters<typeof estimateStems>[2],
): AsyncGenerator<StemBlock, void, void> {
  const running = members.map(({ stream, weight = 1, delaySamples = 0, ...estimator }) => ({
    blocks: estimateStems(delayed(stream, delaySamples), estimator, context),
    weight,
    delaySamples,
  }))
  const isAlone = running.length === 1 && running[0].delaySamples === 0
  return isAlone ? running[0].blocks : weightedMean(running, context.targets)
}
