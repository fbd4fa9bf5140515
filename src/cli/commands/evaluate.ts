import { tmpdir } from 'node:os'
import {
  type EvaluatedModel,
  evaluateSongs,
  type SongEvaluation,
} from '../../core/workflows/separation/evaluation/evaluate.js'
import { findSongs } from '../../core/workflows/separation/evaluation/song-folders.js'
import { summarize } from '../../core/workflows/separation/evaluation/summary.js'
import { requireModel } from '../../core/models/installed.js'
import { ensembleAlgorithms } from '../../core/models/ensemble-algorithm.js'
import { embeddedModelName } from '../../core/models/registry.js'
import { type Command, type CommandInput, flag, UsageError, valued } from '../command.js'
import { evaluationTable } from './evaluation-table.js'
import { runInForeground } from '../files/foreground-run.js'
import { unfinishedFolder } from '../files/local-file.js'
import { separationCommandOptions, separationSettings } from '../workflows/model-options.js'
import { duration, type ProgressLine } from '../terminal/progress-line.js'

export const command: Command = {
  usage: 'evaluate <folder> [options]',
  description:
    'Measures how well models separate songs whose stems are known, in comparison with trivial baselines.\n' +
    'Each song has a folder with vocals.* and accompaniments.*, or as in MUSDB with vocals.*, drums.*, bass.* and ' +
    'other.*.\n' +
    'It may also have mixture.*; by default, the mixture is the sum of the stems.',
  positionals: { min: 1, max: 1 },
  options: {
    ...separationCommandOptions,
    model: valued(
      'name',
      'Model to measure, as for "separate"; may be repeated. a+b or a=2+b=1 combines several models, by ' +
        'default as an average (see --ensemble). Default: embedded.',
      { multiple: true },
    ),
    ensemble: valued(
      ensembleAlgorithms.join('|'),
      'How the estimates of several models are combined. Default: avg_wave.',
    ),
    json: flag('Print one JSON object with the scores of every song, or with the error, on stdout.'),
  },
  notes:
    'uSDR, SI-SDR and the gain over the mixture are means over the songs; cSDR (the median over chunks of 1 s) is ' +
    'the median. "False vocals" ' +
    'is the level of the predicted vocals where nobody sings, in dB relative to the mixture. "Sum error" is the ' +
    'largest |mixture - vocals - ' +
    'accompaniments|. The audio of one song at a time is written to the temporary folder.\nExit status: 0 done, 1 ' +
    'failed, 2 wrong usage, 130 interrupted by Ctrl-C.',
  async run(input, terminal) {
    const models = modelsOf(input)
    return await runInForeground(input.isOn('json'), terminal, async (signal, progress) => {
      const songs = await evaluateFolder(input, models, signal, progress)
      return { json: JSON.parse(JSON.stringify(reportOf(input, songs), rounded)), text: text(songs) }
    })
  },
}

/** @throws UsageError for a weight that is not a positive number */
function modelsOf(input: CommandInput): EvaluatedModel[] {
  const { model } = input.values
  const names = Array.isArray(model) ? model : [embeddedModelName]
  const ensemble = input.oneOf(ensembleAlgorithms, 'ensemble')
  return names.map((name) => ({
    name,
    ensemble,
    choices: name.split('+').map((part) => {
      const [choice, weight] = part.split('=')
      if (choice && (weight === undefined || Number(weight) > 0))
        return { model: choice, ...(weight === undefined ? {} : { weight: Number(weight) }) }
      throw new UsageError(`--model takes a name, or several as in a+b or a=2+b=1, not "${name}".`)
    }),
  }))
}

async function evaluateFolder(
  input: CommandInput,
  models: EvaluatedModel[],
  signal: AbortSignal,
  progress: ProgressLine,
): Promise<SongEvaluation[]> {
  const { threads, provider, runtime } = separationSettings(input)
  const folders = await findSongs(input.first)
  for (const { choices } of models) for (const { model } of choices) await requireModel(model)
  const scratch = await unfinishedFolder(tmpdir(), 'stemwork-evaluation-')
  try {
    const songs: SongEvaluation[] = []
    const onProgress = (share: number) => progress.show('Evaluating', share)
    const network = { threads, provider, runtime }
    const settings = { models, scratchFolder: scratch.path, ...network, signal, onProgress }
    for await (const song of evaluateSongs(folders, settings)) songs.push(song)
    return songs
  } finally {
    await scratch.remove()
  }
}

function reportOf(input: CommandInput, songs: readonly SongEvaluation[]) {
  return {
    folder: input.first,
    seconds: secondsOf(songs),
    peakMemoryBytes: peakMemoryBytes(),
    summary: summarize(songs),
    songs,
  }
}

/** Digits beyond a thousandth of a dB are noise; NaN and infinity become null. */
function rounded(key: string, value: unknown): unknown {
  return typeof value === 'number' && Number.isFinite(value) && key !== 'sumError'
    ? Math.round(value * 1000) / 1000
    : value
}

function text(songs: readonly SongEvaluation[]): string {
  const count = songs.length === 1 ? '1 song' : `${songs.length} songs`
  return (
    `${evaluationTable(songs)}\n${count}, ${duration(secondsOf(songs))} of audio; peak memory ` +
    `${Math.round(peakMemoryBytes() / 2 ** 20)} MiB.\n`
  )
}

function secondsOf(songs: readonly SongEvaluation[]): number {
  return songs.reduce((sum, { seconds }) => sum + seconds, 0)
}

/** Peak memory of this process, including networks. */
function peakMemoryBytes(): number {
  return process.resourceUsage().maxRSS * 1024
}
