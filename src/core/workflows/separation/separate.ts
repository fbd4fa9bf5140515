import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { invalidOptions } from '../../engine/errors.js'
import { memoryLimit } from '../../engine/workflow/memory-limit.js'
import type { AudioStream } from '../../media/dsp/audio-stream.js'
import type { TrackCheckpoint } from './checkpoint/track-checkpoint.js'
import { openAudio } from '../../media/decode/open-audio.js'
import { resample } from '../../media/dsp/resample.js'
import { segmentStart } from '../../media/dsp/segment.js'
import { toStereo } from '../../media/dsp/stereo.js'
import type { PipelineTimings } from './pipeline/estimation.js'
import { createArchitecture } from './architectures/create-architecture.js'
import type { StemName } from '../../models/stems.js'
import type { ProviderFallback } from '../../models/session/execution-provider.js'
import { betterModelHint } from '../../models/best-model.js'
import { isBuiltIn } from '../../models/load-model.js'
import type { Model } from '../../models/manifest.js'
import type { Network, NetworkFacts } from '../../models/session/network.js'
import { embeddedModelName, resolveModel } from '../../models/registry.js'
import { withWarmNetworks } from '../../models/session/warm-networks.js'
import { targetStems, type PipelineMember } from './pipeline/pipeline.js'
import { type ScratchTrack, writeScratchTrack } from './pipeline/scratch-track.js'
import { openCheckpoint } from './open-checkpoint.js'
import { openStemFiles } from './open-stem-files.js'
import { bandOf, checkOptions, type ModelChoice, type SeparationOptions } from './separation-options.js'
import { type SeparatedTrack, separateTrack } from './separate-track.js'
import type { StemFiles } from './stem-files.js'

export type { SeparationProgress } from './separate-track.js'
export type { ModelChoice, SeparationOptions } from './separation-options.js'

export interface UsedModel {
  name: string
  version: string
  sha256: string
}

export interface Separation extends Omit<SeparatedTrack, 'timings'>, Pick<NetworkFacts, 'runtime' | 'runtimeHint'> {
  /**
   * In milliseconds. `load` is the time to load models and networks: almost none in a process that has used them
   * before.
   */
  timings: PipelineTimings & { load: number }
  /** The model, or the models of the ensemble. */
  models: UsedModel[]
  /** One line that names a better model, if only the bundled one was used. */
  hint?: string
  /** Messages about anything that was not done as requested, and about losses of a damaged file. */
  warnings: string[]
}

/**
 * Separates an audio file into stems: stereo files at the model's sample rate, with the same length and start. Before
 * rounding to the file's format, vocals and accompaniments add up to the mixture, sample by sample; nothing is
 * normalized. Memory does not grow with the length of the audio. The networks stay loaded for the next call.
 *
 * @throws StemworkError `BAD_INPUT` when the file cannot be used, `INVALID_OPTIONS` for an invalid option or model,
 * `MODEL_UNAVAILABLE` for a model that must be pulled first, `MISSING_DEPENDENCY` if no runtime can run the networks
 */
export async function separate(inputPath: string, options: SeparationOptions): Promise<Separation> {
  const { model = embeddedModelName, threads, provider, runtime, maxWarmBytes, signal } = options
  signal?.throwIfAborted()
  checkOptions(options)
  const startedAt = performance.now()
  const { choices, models, paths } = await resolveModels(model)
  const limitBytes = await memoryFor(paths, options.batch)
  return withWarmNetworks(paths, { threads, provider, runtime, maxWarmBytes }, async (networks) => {
    const passes: Pass[] = []
    try {
      memoryLimit[0] = limitBytes
      let taken = 0
      for (const [index, each] of models.entries()) {
        const own = networks.slice(taken, (taken += each.paths.length))
        await addPasses(passes, each, own, { index, ...choices[index] }, options)
      }
      const load = performance.now() - startedAt
      const usedModels = models.map(({ manifest: { name, version, sha256 } }) => ({ name, version, sha256 }))
      const isReadOnce = passes.length === 1 && !passes[0]?.architecture.needsTrackStatistics
      const used = runtimeOf(networks)
      const work = { models: usedModels, runtime: used.runtime, passes: passes.length, isReadOnce }
      const checkpoint = await openCheckpoint(inputPath, work, options)
      const { timings, losses, ...separated } = await separateWith(passes, inputPath, options, {
        isReadOnce,
        checkpoint,
      })
      const warnings = networks.flatMap(({ fallback }) => (fallback ? [fallbackText(fallback)] : []))
      return {
        ...separated,
        timings: { ...timings, load },
        models: usedModels,
        ...used,
        ...(models.every(({ path }) => isBuiltIn(dirname(path))) ? { hint: betterModelHint } : {}),
        warnings: [...new Set([...warnings, ...losses])],
      }
    } finally {
      memoryLimit[0] = 0
      for (const { architecture } of passes) architecture.close()
    }
  })
}

/**
 * Loads the model and its networks, which stay warm for the next separations, and returns their runtime. Throws as
 * `separate` does.
 */
export async function loadNetworks(
  options: Pick<SeparationOptions, 'model' | 'threads' | 'provider' | 'runtime' | 'maxWarmBytes'>,
): Promise<Pick<Separation, 'runtime' | 'runtimeHint'>> {
  const { model = embeddedModelName, ...network } = options
  const { paths } = await resolveModels(model)
  return await withWarmNetworks(paths, network, async (networks) => runtimeOf(networks))
}

/**
 * Memory that decoding and separating may take; with the bundled network they take at most half of it. A file that
 * takes more was made to fill the memory.
 */
const usualBytes = 900 * 2 ** 20
/** Large networks take up to this many times their file's size. */
const bytesPerWeightByte = 64

/** The memory that this process may hold, besides what it holds already for networks kept warm. */
async function memoryFor(networkPaths: readonly string[], batch = 1): Promise<number> {
  let bytes = Math.max(usualBytes, process.memoryUsage.rss() + 0.7 * usualBytes)
  // `usualBytes` covers the bundled network, one segment at a time.
  bytes += (batch * networkPaths.length - 1) * 0.5 * usualBytes
  for (const path of networkPaths) {
    const large = Math.max(0, (await stat(path)).size - smallNetworkBytes)
    bytes += bytesPerWeightByte * large
  }
  return bytes
}

const smallNetworkBytes = 4 * 2 ** 20

async function resolveModels(model: NonNullable<SeparationOptions['model']>) {
  const choices: readonly ModelChoice[] = typeof model === 'string' ? [{ model }] : model
  const models: Model[] = await Promise.all(choices.map((choice) => resolveModel(choice.model)))
  return { choices, models, paths: models.flatMap((each) => each.paths) }
}

/** One pass of a model over the track; there is one per shift. */
type Pass = Omit<PipelineMember, 'stream' | 'statistics'>

const longestShiftSeconds = 0.5

async function addPasses(
  passes: Pass[],
  { manifest, path }: Model,
  networks: Network[],
  choice: Omit<ModelChoice, 'model'> & { index: number },
  options: SeparationOptions,
): Promise<void> {
  const { shifts = 1, overlap, denoise, batch } = options
  const stems = targetStems(outputStems(options), options.ownAccompaniments)
  // Errors use the name that users know.
  const named = isBuiltIn(dirname(path)) ? { ...manifest, name: embeddedModelName } : manifest
  for (let shift = 0; shift < shifts; shift++) {
    const architecture = await createArchitecture(named, networks, { stems, overlap, denoise })
    const delaySamples = Math.round((shift * longestShiftSeconds * architecture.sampleRate) / shifts)
    const { index: model, weight } = choice
    passes.push({ architecture, networks, weight, batch, delaySamples, model, band: bandOf(choice) })
  }
}

async function separateWith(
  passes: readonly Pass[],
  inputPath: string,
  options: SeparationOptions,
  { isReadOnce, checkpoint }: { isReadOnce: boolean; checkpoint: TrackCheckpoint | undefined },
) {
  const { outputs, format = '16', tags, signal, maxSeconds, decoders, growingPeaks } = options
  const sampleRate = commonSampleRate(passes)
  const seek = resumePoint(passes[0], checkpoint, sampleRate)
  const opened = await openAudio(inputPath, { signal, maxSeconds, decoders, seek })
  // Mixed down first, so that only two channels are resampled.
  const decoded = resample(toStereo(opened), sampleRate)
  const scratch = isReadOnce ? undefined : await writeScratchTrack(decoded, `${Object.values(outputs)[0]}.scratch`)
  let files: StemFiles | undefined
  try {
    const members = await membersOf(passes, scratch ?? decoded, checkpoint, signal)
    const stemFiles = (files = await openStemFiles(outputs, {
      sampleRate,
      format,
      tags,
      growingPeaks: growingPeaks ? { sampleCount: promisedSamples(opened, decoded) } : undefined,
      restore: async (...file) => await checkpoint?.restore?.(...file),
    }))
    checkpoint?.follow?.(() => stemFiles.growing())
    const separated = await separateTrack(members, stemFiles, { ...options, outputs: outputStems(options) })
    const losses = opened.warnings ?? []
    return { ...separated, losses }
  } catch (error) {
    await files?.discard()
    throw error
  } finally {
    await checkpoint?.close()
    await scratch?.remove()
  }
}

/** Number of samples at the output's rate if the source states it, else 0. */
function promisedSamples({ statedSeconds = 0 }: AudioStream, { sampleCount, sampleRate }: AudioStream): number {
  return sampleCount ?? Math.round(statedSeconds * sampleRate)
}

/** @param track a stream that only one pass can read, or a copy that each pass opens for itself */
async function membersOf(
  passes: readonly Pass[],
  track: AudioStream | ScratchTrack,
  checkpoint: TrackCheckpoint | undefined,
  signal: AbortSignal | undefined,
): Promise<PipelineMember[]> {
  const members: PipelineMember[] = []
  for (const [index, pass] of passes.entries()) {
    const kept = checkpoint?.pass(index)
    members.push(
      'open' in track
        ? { ...pass, stream: await track.open(signal), statistics: track.statistics, kept }
        : { ...pass, stream: track, statistics: undefined, kept },
    )
  }
  return members
}

/** Start of the first segment that was not kept; `undefined` for a track that is read from its start. */
function resumePoint(pass: Pass | undefined, checkpoint: TrackCheckpoint | undefined, sampleRate: number) {
  if (!checkpoint?.restore) return undefined
  const { count } = checkpoint.pass(0)
  return { sample: pass ? segmentStart(count, pass.architecture.geometry) : 0, sampleRate }
}

/** The same for all networks of a process. */
function runtimeOf([first]: readonly Network[]): Pick<Separation, 'runtime' | 'runtimeHint'> {
  if (!first) throw new Error('a model has at least one network; it was given none')
  return { runtime: first.runtime, runtimeHint: first.runtimeHint }
}

function fallbackText({ wanted, reason }: ProviderFallback): string {
  return `The execution provider ${wanted} could not be used, so the CPU ran the network: ${reason}`
}

function outputStems({ outputs }: SeparationOptions): StemName[] {
  return Object.keys(outputs) as StemName[]
}

function commonSampleRate(passes: readonly Pass[]): number {
  const rates = new Set(passes.map(({ architecture }) => architecture.sampleRate))
  const [sampleRate] = rates
  if (rates.size === 1 && sampleRate !== undefined) return sampleRate
  throw invalidOptions(
    `The models of the ensemble have different sample rates (${[...rates].join(', ')} Hz). Choose models with the ` +
      'same rate.',
  )
}
