import { badInput, StemworkError } from '../../engine/errors.js'
import type { AudioStream } from '../dsp/audio-stream.js'
import { openAudio } from '../decode/open-audio.js'
import { resample } from '../dsp/resample.js'
import { toStereo } from '../dsp/stereo.js'
import type { PipelineTimings } from '../pipeline/estimation.js'
import { createKind } from '../architectures/create-architecture.js'
import type { StemName } from '../stems.js'
import type { ProviderFallback } from '../runtime/execution-provider.js'
import type { Model } from '../models/manifest.js'
import type { Network } from '../runtime/network.js'
import { embeddedModelName, resolveModel } from '../models/registry.js'
import { withWarmNetworks } from '../runtime/warm-networks.js'
import { runPipeline, targetStems, type PipelineMember } from '../pipeline/pipeline.js'
import { ScratchTrack } from '../pipeline/scratch-track.js'
import { checkOptions, type SeparationOptions } from './separation-options.js'
import { StemFiles } from './stem-files.js'

export type { ModelChoice, SeparationOptions, SeparationProgress } from './separation-options.js'

export interface UsedModel {
  name: string
  version: string
  sha256: string
}

export interface Separation {
  seconds: number
  sampleRate: number
  clippedSamples: number
  /** Milliseconds. `load` is the time to get model and network ready: next to nothing in a process that has used them before. */
  timings: PipelineTimings & { load: number }
  /** The model, or those of the ensemble. */
  models: UsedModel[]
  /** What went otherwise than asked for, in words. */
  warnings: string[]
}

/**
 * Separates an audio file into stems: stereo WAV files at the model's sample rate, of the same length and start. Before rounding
 * to the file's format, vocals and accompaniments add up to the mixture, sample for sample; nothing is normalised. Memory does
 * not grow with the length of the audio. The networks stay loaded for the next call.
 *
 * @throws StemworkError `BAD_INPUT` when the file cannot be used, `INVALID_OPTIONS` when a model or an option cannot,
 * `MODEL_UNAVAILABLE` for a model that has to be pulled first, `MISSING_DEPENDENCY` without onnxruntime-node
 */
export async function separate(inputPath: string, options: SeparationOptions): Promise<Separation> {
  const { model = embeddedModelName, threads, provider, maxWarmBytes, signal } = options
  signal?.throwIfAborted()
  checkOptions(options)
  const startedAt = performance.now()
  const choices = typeof model === 'string' ? [{ model }] : model
  const models = await Promise.all(choices.map((choice) => resolveModel(choice.model)))
  const paths = models.flatMap((each) => each.paths)
  return withWarmNetworks(paths, { threads, provider, maxWarmBytes }, async (networks) => {
    const passes: Pass[] = []
    try {
      let used = 0
      for (const [index, each] of models.entries()) {
        const own = networks.slice(used, (used += each.paths.length))
        await addPasses(passes, each, own, choices[index]?.weight, options)
      }
      const load = performance.now() - startedAt
      const { timings, ...separated } = await separateWith(passes, inputPath, options)
      const usedModels = models.map(({ manifest: { name, version, sha256 } }) => ({ name, version, sha256 }))
      const warnings = networks.flatMap(({ fallback }) => (fallback ? [fallbackText(fallback)] : []))
      return { ...separated, timings: { ...timings, load }, models: usedModels, warnings: [...new Set(warnings)] }
    } finally {
      for (const { kind } of passes) kind.close()
    }
  })
}

/** One way of a model over the track: there is one for each shift. */
type Pass = Omit<PipelineMember, 'stream' | 'statistics'>

const longestShiftSeconds = 0.5

async function addPasses(
  passes: Pass[],
  { manifest }: Model,
  networks: Network[],
  weight: number | undefined,
  options: SeparationOptions,
): Promise<void> {
  const { shifts = 1, overlap, denoise, batch } = options
  const stems = targetStems(outputStems(options), options.ownAccompaniments)
  for (let shift = 0; shift < shifts; shift++) {
    const kind = await createKind(manifest, networks, { stems, overlap, denoise })
    const delayFrames = Math.round((shift * longestShiftSeconds * kind.sampleRate) / shifts)
    passes.push({ kind, networks, weight, batch, delayFrames })
  }
}

async function separateWith(passes: readonly Pass[], inputPath: string, options: SeparationOptions) {
  const { outputs, format = '16', signal, maxSeconds, onProgress } = options
  const sampleRate = commonSampleRate(passes)
  const decoded = toStereo(resample(await openAudio(inputPath, { signal, maxSeconds }), sampleRate))
  const isReadOnce = passes.length === 1 && !passes[0]?.kind.needsTrackStatistics
  const scratch = isReadOnce ? undefined : await ScratchTrack.write(decoded, `${Object.values(outputs)[0]}.scratch`)
  let files: StemFiles | undefined
  try {
    const members: PipelineMember[] = []
    for (const pass of passes) {
      members.push({ ...pass, stream: scratch ? await scratch.open(signal) : decoded, statistics: scratch?.statistics })
    }
    const [first] = members
    const opened = (files = await StemFiles.open(outputs, sampleRate, format))
    const { frames, timings } = await runPipeline(members, {
      outputs: outputStems(options),
      ownAccompaniments: options.ownAccompaniments,
      signal,
      sink: (audio) => opened.write(audio),
      onFrames: first && progressReporter(first.stream, options),
    })
    if (frames === 0)
      throw badInput('no_audio', 'The file holds no audio. Send a file with at least a few milliseconds of sound.')
    const { clippedSamples } = await opened.publish()
    onProgress?.({ progress: 1, etaSeconds: 0, framesDone: frames })
    return { seconds: frames / sampleRate, sampleRate, clippedSamples, timings }
  } catch (error) {
    await files?.discard()
    throw error
  } finally {
    await scratch?.remove()
  }
}

function fallbackText({ wanted, reason }: ProviderFallback): string {
  return `The execution provider ${wanted} could not be used, so the processor did the work: ${reason}`
}

function outputStems({ outputs }: SeparationOptions): StemName[] {
  return Object.keys(outputs) as StemName[]
}

function commonSampleRate(passes: readonly Pass[]): number {
  const rates = new Set(passes.map(({ kind }) => kind.sampleRate))
  const [sampleRate] = rates
  if (rates.size === 1 && sampleRate !== undefined) return sampleRate
  throw new StemworkError(
    'INVALID_OPTIONS',
    `The models of the ensemble work at different sample rates (${[...rates].join(', ')} Hz). Choose models of one rate.`,
  )
}

/**
 * A header may promise too few frames or none: then the share of the source's bytes that was read counts, and never reaches 1.
 */
function progressReporter(stream: AudioStream, { onProgress }: SeparationOptions): (framesDone: number) => void {
  const startedAt = performance.now()
  let progress = 0
  return (framesDone) => {
    const share = stream.frames ? framesDone / stream.frames : (stream.readFraction?.() ?? 0)
    progress = Math.max(progress, Math.min(share, 0.99))
    const elapsedSeconds = (performance.now() - startedAt) / 1000
    onProgress?.({
      progress,
      framesDone,
      etaSeconds: progress > 0 ? (elapsedSeconds * (1 - progress)) / progress : undefined,
    })
  }
}
