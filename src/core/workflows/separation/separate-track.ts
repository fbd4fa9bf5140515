import { badInput } from '../../engine/errors.js'
import type { AudioStream } from '../../media/dsp/audio-stream.js'
import type { StemName } from '../../models/stems.js'
import type { PipelineTimings } from './pipeline/estimation.js'
import { type PipelineMember, type PipelineOptions, runPipeline } from './pipeline/pipeline.js'
import type { StemFiles } from './stem-files.js'

export interface SeparationProgress {
  /** 0..1, never decreasing; 1 only when all files are complete. */
  progress: number
  /** Estimated time left; absent until there is a basis for an estimate. */
  etaSeconds?: number
  /** Finished samples per channel, at the output's sample rate. */
  samplesDone: number
}

export interface TrackOptions extends Pick<PipelineOptions, 'ownAccompaniments' | 'ensemble' | 'signal'> {
  outputs: readonly StemName[]
  onProgress?(progress: SeparationProgress): void
}

export interface SeparatedTrack {
  seconds: number
  sampleRate: number
  clippedSamples: number
  timings: PipelineTimings
}

/**
 * Separates a decoded track into files, and publishes them. If this fails, the opener of the files must discard them.
 *
 * @param members each with its own stream of the track, at the same sample rate
 * @throws StemworkError `BAD_INPUT` `no_audio` for a track without samples; the signal's reason
 */
export async function separateTrack(
  members: readonly PipelineMember[],
  files: StemFiles,
  options: TrackOptions,
): Promise<SeparatedTrack> {
  const { stream } = members[0]!
  const { sampleRate } = stream
  const { outputs, ownAccompaniments, ensemble, signal, onProgress } = options
  const { sampleCount, timings } = await runPipeline(members, {
    outputs,
    ownAccompaniments,
    ensemble,
    signal,
    sink: (audio) => files.write(audio),
    onSamples: progressReporter(stream, options),
  })
  if (sampleCount === 0)
    throw badInput('no_audio', 'The file holds no audio. Send a file with at least a few milliseconds of sound.')
  const { clippedSamples } = await files.publish()
  onProgress?.({ progress: 1, etaSeconds: 0, samplesDone: sampleCount })
  return { seconds: sampleCount / sampleRate, sampleRate, clippedSamples, timings }
}

/**
 * A header may state too few samples or none. Then progress is the fraction of the source's bytes read so far. Progress
 * stays below 1.
 */
function progressReporter(stream: AudioStream, { onProgress }: TrackOptions): (samplesDone: number) => void {
  const startedAt = performance.now()
  let progress = 0
  return (samplesDone) => {
    const share = stream.sampleCount ? samplesDone / stream.sampleCount : (stream.readFraction?.() ?? 0)
    progress = Math.max(progress, Math.min(share, 0.99))
    const elapsedSeconds = (performance.now() - startedAt) / 1000
    onProgress?.({
      progress,
      samplesDone,
      etaSeconds: progress > 0 ? (elapsedSeconds * (1 - progress)) / progress : undefined,
    })
  }
}
