import type { EnsembleAlgorithm } from '../../../models/ensemble-algorithm.js'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StemworkError } from '../../../engine/errors.js'
import { type ModelChoice, separate, type SeparationOptions } from '../separate.js'
import { compareFiles, compareBaselines, type MixedSong, type SeparationScores } from './compare.js'
import { mixSong } from './mix-song.js'
import type { SongFolder } from './song-folders.js'

/** A model or an ensemble to measure. */
export interface EvaluatedModel {
  /** Its name in the results. */
  name: string
  choices: readonly ModelChoice[]
  /** Algorithm that combines the estimates of several models. Default: `avg_wave`. */
  ensemble?: EnsembleAlgorithm
}

export interface EvaluationOptions extends Pick<SeparationOptions, 'threads' | 'provider' | 'runtime' | 'signal'> {
  models: readonly EvaluatedModel[]
  /** Folder for the audio of one song at a time. Files written there are removed afterwards. */
  scratchFolder: string
  /** Fraction of the work that is done, 0..1. */
  onProgress?(progress: number): void
}

/** Scores of one method on one song. */
export interface MethodScores extends SeparationScores {
  method: string
  /** Gain in uSDR over using the mixture as the stem, in dB. */
  improvement: { vocals: number; accompaniments: number }
  /** Seconds that a model took, without loading it; absent for baselines. */
  workSeconds?: number
}

export interface SongEvaluation {
  song: string
  seconds: number
  /** The models in their order, then the baselines. */
  methods: MethodScores[]
}

/**
 * Separates songs whose stems are known, and scores the results together with baselines that need no model. Songs are
 * returned in order, each as soon as it is done. Memory does not grow with their length.
 *
 * @throws StemworkError as `separate` does, naming the song with the bad files; the signal's reason
 */
export async function* evaluateSongs(
  songs: readonly SongFolder[],
  options: EvaluationOptions,
): AsyncGenerator<SongEvaluation> {
  for (const [index, song] of songs.entries()) {
    const onProgress = (share: number) => options.onProgress?.((index + share) / songs.length)
    try {
      yield await evaluateSong(song, { ...options, onProgress })
    } catch (error) {
      if (!StemworkError.is(error) || error.code !== 'BAD_INPUT') throw error
      throw new StemworkError('BAD_INPUT', `The song "${song.name}" cannot be used. ${error.message}`, {
        reason: error.reason,
        cause: error,
      })
    }
  }
}

async function evaluateSong(folder: SongFolder, options: EvaluationOptions): Promise<SongEvaluation> {
  const { models, scratchFolder, signal, onProgress } = options
  const mixturePath = join(scratchFolder, 'mixture.wav')
  try {
    const { song, seconds } = await mixSong(folder, mixturePath, signal)
    const baselines = await compareBaselines(song, signal)
    const { vocals, accompaniments } = baselines[0]! // the mixture
    const scored: Omit<MethodScores, 'improvement'>[] = []
    for (const [index, model] of models.entries()) {
      scored.push(
        await evaluateModel(song, model, {
          ...options,
          onProgress: (share) => onProgress?.((index + share) / models.length),
        }),
      )
    }
    const methods = [...scored, ...baselines].map((scores) => ({
      ...scores,
      improvement: {
        vocals: scores.vocals.uSdr - vocals.uSdr,
        accompaniments: scores.accompaniments.uSdr - accompaniments.uSdr,
      },
    }))
    return { song: song.name, seconds, methods }
  } finally {
    await rm(mixturePath, { force: true })
  }
}

async function evaluateModel(song: MixedSong, { name, choices, ensemble }: EvaluatedModel, options: EvaluationOptions) {
  const { scratchFolder, threads, provider, runtime, signal, onProgress } = options
  const outputs = {
    vocals: join(scratchFolder, 'vocals.wav'),
    accompaniments: join(scratchFolder, 'accompaniments.wav'),
  }
  try {
    const startedAt = performance.now()
    const { timings, sampleRate } = await separate(song.mixture, {
      outputs,
      model: choices,
      ensemble,
      format: '32f',
      threads,
      provider,
      runtime,
      signal,
      onProgress: ({ progress }) => onProgress?.(progress),
    })
    const workSeconds = (performance.now() - startedAt - timings.load) / 1000
    return { method: name, ...(await compareFiles(song, outputs, sampleRate, signal)), workSeconds }
  } finally {
    for (const path of Object.values(outputs)) await rm(path, { force: true })
  }
}
