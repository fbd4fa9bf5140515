import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StemworkError } from '../../engine/errors.js'
import type { ExecutionProvider } from '../runtime/execution-provider.js'
import { type ModelChoice, separate } from '../workflow/separate.js'
import { compareFiles, compareGuesses, type MixedSong, type SeparationScores } from './compare.js'
import { mixSong } from './mix-song.js'
import type { SongFolder } from './song-folders.js'

/** A model or an ensemble to be measured. */
export interface EvaluatedModel {
  /** What the results call it. */
  name: string
  choices: readonly ModelChoice[]
}

export interface EvaluationOptions {
  models: readonly EvaluatedModel[]
  /** Folder for the audio of one song at a time; what is written there is removed again. */
  scratchFolder: string
  threads?: number
  provider?: ExecutionProvider
  /** Seen within a second or two. */
  signal?: AbortSignal
  /** Share of the work that is done, 0..1. */
  onProgress?(progress: number): void
}

/** Scores of one method on one song. */
export interface MethodScores extends SeparationScores {
  method: string
  /** uSDR in dB beyond that of the mixture taken for the stem. */
  improvement: { vocals: number; accompaniments: number }
  /** Seconds that a model took, without loading it; absent for guesses. */
  workSeconds?: number
}

export interface SongEvaluation {
  song: string
  seconds: number
  /** The models in their order, then the guesses. */
  methods: MethodScores[]
}

/**
 * Separates songs whose stems are known and scores the result, beside guesses that take no skill. Songs come in their order,
 * each when it is done. Memory does not grow with their length.
 *
 * @throws StemworkError as `separate` does, naming the song whose files are at fault; the signal's reason
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
    const guessed = await compareGuesses(song, signal)
    const [{ vocals, accompaniments }] = guessed // the mixture
    const scored: Omit<MethodScores, 'improvement'>[] = []
    for (const [index, model] of models.entries()) {
      scored.push(
        await evaluateModel(song, model, {
          ...options,
          onProgress: (share) => onProgress?.((index + share) / models.length),
        }),
      )
    }
    const methods = [...scored, ...guessed].map((scores) => ({
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

async function evaluateModel(song: MixedSong, { name, choices }: EvaluatedModel, options: EvaluationOptions) {
  const { scratchFolder, threads, provider, signal, onProgress } = options
  const outputs = {
    vocals: join(scratchFolder, 'vocals.wav'),
    accompaniments: join(scratchFolder, 'accompaniments.wav'),
  }
  try {
    const startedAt = performance.now()
    const { timings, sampleRate } = await separate(song.mixture, {
      outputs,
      model: choices,
      format: '32f',
      threads,
      provider,
      signal,
      onProgress: ({ progress }) => onProgress?.(progress),
    })
    const workSeconds = (performance.now() - startedAt - timings.load) / 1000
    return { method: name, ...(await compareFiles(song, outputs, sampleRate, signal)), workSeconds }
  } finally {
    for (const path of Object.values(outputs)) await rm(path, { force: true })
  }
}
