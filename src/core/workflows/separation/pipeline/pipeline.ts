import type { AudioBlock, AudioStream } from '../../../media/dsp/audio-stream.js'
import type { EnsembleMember } from './aligned-blocks.js'
import { combinedWaves } from './ensemble.js'
import { type Band, type EnsembleAlgorithm, isSpectral, statisticOf } from '../../../models/ensemble-algorithm.js'
import { estimateStems, type Estimator, type PipelineTimings, type StemBlock } from './estimation.js'
import { FloatPlanes } from '../../../media/dsp/float-planes.js'
import { combinedSpectra } from './spectral-ensemble.js'
import type { StemName, Stems } from '../../../models/stems.js'

/** An estimator and its own stream of the track, since a stream can only be read once. */
export interface PipelineMember extends Estimator {
  stream: AudioStream
  /** Relative weight in the mean over the members. Default: 1. */
  weight?: number
  /** Samples of silence before the track: shifts the segments, so that the mean averages over shifts. Default: 0. */
  delaySamples?: number
  /**
   * Number of the model that it runs: the shifted passes of a model are averaged before models are combined. Default:
   * its own number.
   */
  model?: number
  /** Frequencies that the model takes part in, for the algorithms that combine spectra. Default: all. */
  band?: Band
}

export interface PipelineOptions {
  /** Stems to return. Default: vocals and accompaniments. */
  outputs?: readonly StemName[]
  /** Takes the accompaniments from the models instead of subtracting the vocals from the mixture. */
  ownAccompaniments?: boolean
  /** Algorithm that combines the estimates of several models. Default: `avg_wave`. */
  ensemble?: EnsembleAlgorithm
  signal?: AbortSignal
  /** Receives the stems in track order. They are valid until its promise resolves. */
  sink(audio: Stems): Promise<void>
  onSamples?(samplesDone: number): void
}

const defaultOutputs: readonly StemName[] = ['vocals', 'accompaniments']

/**
 * Separates a track with one model, or with several whose estimates are combined, in bounded memory. The accompaniments
 * are the mixture minus the vocals, sample by sample, computed once at the end.
 *
 * @throws the signal's reason; the signal is checked between segments
 */
export async function runPipeline(
  members: readonly PipelineMember[],
  options: PipelineOptions,
): Promise<{ sampleCount: number; timings: PipelineTimings }> {
  const { outputs = defaultOutputs, ownAccompaniments, ensemble = 'avg_wave', signal, sink, onSamples } = options
  const timings: PipelineTimings = { decode: 0, dsp: 0, network: 0, write: 0 }
  const targets = targetStems(outputs, ownAccompaniments)
  const rest = new FloatPlanes()
  const { kept } = members[0]!
  let sampleCount = kept && !kept.read ? (kept.state?.start ?? 0) : 0
  const blocks = blocksOf(members, ensemble, { targets, timings, signal })
  for await (const { stems, mixture, sampleCount: blockSamples } of blocks) {
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
  algorithm: EnsembleAlgorithm,
  context: Parameters<typeof estimateStems>[2],
): AsyncGenerator<StemBlock, void, void> {
  const running = members.map(({ stream, weight = 1, delaySamples = 0, model, band, ...estimator }, index) => ({
    blocks: estimateStems(delayed(stream, delaySamples), estimator, context),
    weight,
    delaySamples,
    model: model ?? index,
    band,
  }))
  if (algorithm === 'avg_wave') return meanOf(running, context.targets)
  const models = new Map<number, typeof running>()
  for (const member of running) models.set(member.model, [...(models.get(member.model) ?? []), member])
  const estimates = [...models.values()].map((passes) => ({
    ...passes[0]!,
    blocks: meanOf(passes, context.targets),
    delaySamples: 0,
  }))
  if (estimates.length === 1) return estimates[0]!.blocks
  const statistic = statisticOf(algorithm)
  const { sampleRate } = members[0]!.stream
  return isSpectral(algorithm)
    ? combinedSpectra(estimates, context.targets, { statistic, sampleRate })
    : combinedWaves(estimates, context.targets, statistic)
}

function meanOf(members: readonly EnsembleMember[], targets: readonly StemName[]): EnsembleMember['blocks'] {
  const isAlone = members.length === 1 && members[0]!.delaySamples === 0
  return isAlone ? members[0]!.blocks : combinedWaves(members, targets, 'avg')
}

/** The stream with `sampleCount` samples of silence before it. */
function delayed(stream: AudioStream, sampleCount: number): AudioStream {
  if (sampleCount === 0) return stream
  return {
    ...stream,
    sampleCount: stream.sampleCount === undefined ? undefined : stream.sampleCount + sampleCount,
    blocks: delayedBlocks(stream, sampleCount),
  }
}

async function* delayedBlocks({ blocks, channelCount }: AudioStream, sampleCount: number): AsyncGenerator<AudioBlock> {
  yield { channels: Array.from({ length: channelCount }, () => new Float32Array(sampleCount)) }
  yield* blocks
}
