import type { AudioStream } from '../../../media/dsp/audio-stream.js'
import { segments } from '../../../media/dsp/segment.js'
import { FloatPlanes } from '../../../media/dsp/float-planes.js'
import { FloatPool } from '../../../media/dsp/float-pool.js'
import { falseVocalsMeter, stemComparison, type StemScores } from './scores.js'
import { createBaselines, baselineContext, baselineStep } from './baselines.js'
import type { SongFolder } from './song-folders.js'
import { addStereo, tracks } from './tracks.js'

/** Scores of one separation of one song. NaN if the song has nothing to measure, such as no vocals. */
export interface SeparationScores {
  vocals: StemScores
  accompaniments: StemScores
  /**
   * Energy of the predicted vocals over that of the mixture where nobody sings, in dB; NaN if there is no such second.
   */
  falseVocals: number
  /** Largest |mixture - vocals - accompaniments| of any sample. */
  sumError: number
}

/** A song whose mixture is in a file. */
export type MixedSong = SongFolder & { mixture: string }

/** Samples that are compared at a time. */
const step = 64 * baselineStep

/**
 * Compares separated stems with the true ones at the sample rate of the separation.
 *
 * @throws StemworkError `BAD_INPUT` as `openAudio` and `sideBySide` do; the signal's reason
 */
export async function compareFiles(
  song: MixedSong,
  estimate: { vocals: string; accompaniments: string },
  sampleRate: number,
  signal?: AbortSignal,
): Promise<SeparationScores> {
  const scores = runningScores(sampleRate)
  const paths = [...referencePaths(song), estimate.vocals, estimate.accompaniments]
  for await (const { planes, context, sampleCount } of windows(await tracks(paths, sampleRate, signal))) {
    const cut = planes.map((plane) => plane.subarray(context, context + sampleCount))
    scores.add(cut.slice(0, -4), cut.slice(-4, -2), cut.slice(-2))
  }
  return scores.result()
}

/** The same for all baselines, at the song's own sample rate. */
export async function compareBaselines(
  song: MixedSong,
  signal?: AbortSignal,
): Promise<({ method: string } & SeparationScores)[]> {
  const stream = await tracks(referencePaths(song), undefined, signal)
  const scored = (await createBaselines(stream.sampleRate)).map((baseline) => ({
    baseline,
    scores: runningScores(stream.sampleRate),
  }))
  const rest = new FloatPlanes()
  try {
    for await (const { planes, context, sampleCount } of windows(stream)) {
      const reference = planes.map((plane) => plane.subarray(context, context + sampleCount))
      const mixture = reference.slice(0, 2)
      for (const { baseline, scores } of scored) {
        const estimated = baseline.estimate({ planes: planes.slice(0, 2), context })
        const vocals = estimated.vocals.map((plane) => plane.subarray(0, sampleCount))
        const accompaniments =
          estimated.accompaniments?.map((plane) => plane.subarray(0, sampleCount)) ?? rest.difference(mixture, vocals)
        scores.add(reference, vocals, accompaniments)
      }
    }
    return scored.map(({ baseline, scores }) => ({ method: baseline.name, ...scores.result() }))
  } finally {
    for (const { baseline } of scored) baseline.close()
  }
}

/** Mixture, vocals, then the parts that add up to the accompaniments. */
function referencePaths({ mixture, vocals, accompaniments }: MixedSong): string[] {
  return [mixture, vocals, ...accompaniments]
}

interface Window {
  planes: Float32Array[]
  context: number
  /** Samples after the context that belong to the track. */
  sampleCount: number
}

/** Consecutive parts of the stream, with silence around the track. Each is valid until the next one is requested. */
async function* windows(stream: AudioStream): AsyncGenerator<Window> {
  const context = baselineContext
  const pool = new FloatPool()
  const planes = Array.from({ length: stream.channelCount }, () => new Float32Array(step + 2 * context))
  for await (const segment of segments(
    stream.blocks,
    { step, before: context, length: step + 2 * context },
    stream.channelCount,
    pool,
  )) {
    const start = segment.index * step
    segment.planes.forEach((plane, channel) => {
      planes[channel]!.fill(0)
      planes[channel]!.set(plane, segment.start - start + context)
      pool.give(plane)
    })
    yield { planes, context, sampleCount: Math.min(step, (segment.trackSamples ?? Infinity) - start) }
  }
}

function runningScores(sampleRate: number) {
  const ofVocals = stemComparison(sampleRate)
  const ofAccompaniments = stemComparison(sampleRate)
  const falseVocals = falseVocalsMeter(sampleRate)
  const sum = new FloatPlanes()
  let sumError = 0
  return {
    /** @param reference planes of the mixture, the vocals, and stereo parts of the accompaniments */
    add(
      reference: readonly Float32Array[],
      vocals: readonly Float32Array[],
      accompaniments: readonly Float32Array[],
    ): void {
      const mixture = reference.slice(0, 2)
      const truth = reference.slice(2, 4)
      ofVocals.add(truth, vocals)
      const parts = reference.slice(4)
      ofAccompaniments.add(addStereo(sum.take(2, parts[0]!.length), parts), accompaniments)
      falseVocals.add(truth, mixture, vocals)
      mixture.forEach((plane, channel) => {
        for (let i = 0; i < plane.length; i++)
          sumError = Math.max(sumError, Math.abs(plane[i]! - vocals[channel]![i]! - accompaniments[channel]![i]!))
      })
    },

    result: (): SeparationScores => ({
      vocals: measurable(ofVocals.scores()),
      accompaniments: measurable(ofAccompaniments.scores()),
      falseVocals: falseVocals.level(),
      sumError,
    }),
  }
}

/** For a silent reference the ratio only measures the level of the error, and would distort every mean. */
function measurable(scores: StemScores): StemScores {
  return Number.isNaN(scores.siSdr) ? { uSdr: NaN, cSdr: NaN, siSdr: NaN } : scores
}
