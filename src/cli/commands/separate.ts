import { stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { formatTable, outputFormats } from '../../core/media/encode/output-format.js'
import { type Command, type CommandInput, type CommandOption, flag, type Terminal, valued } from '../command.js'
import { runInForeground } from '../files/foreground-run.js'
import { separationCommandOptions } from '../workflows/model-options.js'
import { recommendedModelOption, withRecommendedModel } from './recommended-model.js'
import { nameFields } from '../files/result-names.js'
import { separateBatch } from '../files/separate-batch.js'
import { separateSong, songSummary } from '../files/separate-song.js'
import { batchRequest, isAddress, separationChoice, songPlaces } from '../files/separation-request.js'

/** Options of the commands that separate a song. */
export const songOptions = {
  format: valued(
    outputFormats.join('|'),
    `In this order: ${outputFormats.map((format) => formatTable[format].label).join(', ')}. Default: 16.`,
  ),
  'no-tags': flag("Do not write the song's tags (title, artist, cover, ...) into the files."),
  'allow-private-inputs': flag('Allow a URL on this machine or its network.'),
} satisfies Record<string, CommandOption>

export const command: Command = {
  usage: 'separate <file or url> | <files and folders ...> -o <dir> [options]',
  description:
    'Separates a song, or many files and folders, into vocals.wav and accompaniments.wav (stereo, 44.1 kHz), which ' +
    'add up to the mixture. Nothing leaves this machine.',
  positionals: { min: 1, max: Infinity },
  options: {
    output: valued('dir', 'Folder for the files. Default for one song: "<name of the song>-stems" in this folder.', {
      short: 'o',
    }),
    format: songOptions.format,
    stems: valued(
      'list',
      'Stems to write, separated by commas. Default: vocals,accompaniments; others need a model that has them.',
    ),
    'no-tags': songOptions['no-tags'],
    name: valued(
      'template',
      'Template for the names of the result files of several songs, without extension. Default: ' +
        `"{folder}/{file} - {stem}".\nFields: ${nameFields.map((field) => `{${field}}`).join(' ')}.`,
    ),
    jobs: valued(
      'n',
      'Number of songs to process at a time, each in its own process with its own copy of the model. Default: ' +
        '1, which uses all processors but one.',
    ),
    watch: flag('Keep running and process files that are added later, each once it has stopped growing.'),
    ...separationCommandOptions,
    ...recommendedModelOption,
    preset: valued(
      'name',
      'Several models together, such as lead-and-backing; "stemwork models presets" lists them. Instead of ' +
        '--model.',
    ),
    commercial: flag('With --preset: only if the licences of its models allow commercial use.'),
    json: flag('Print one JSON object with the result or the error on stdout; for several songs, one line per song.'),
    'allow-private-inputs': songOptions['allow-private-inputs'],
  },
  notes:
    'Reads WAV, AIFF, AU, FLAC, WavPack, MP3, M4A/AAC, Ogg Vorbis and Opus, and the sound of MP4, MOV, MKV, WebM, ' +
    'AVI and TS videos; with --ffmpeg, most other formats. In folders, files without the ending of such a format ' +
    'are left out: name them.\n' +
    'With several songs, repeating the command skips finished ones, which are listed in the folder .stemwork in ' +
    'the results folder.\nA failed file does not stop the others; failures are listed at the end.\n' +
    'Exit status: 0 done, 1 failed (several songs: at least one), 2 wrong usage, 130 interrupted by Ctrl-C.',
  async run(given, terminal) {
    const input = await withRecommendedModel(given, terminal)
    return (await isBatch(input))
      ? separateBatch(batchRequest(input, availableParallelism()), input.isOn('json'), terminal)
      : separateOne(input, terminal)
  },
}

/** One file or URL gives results with plain names in a folder of its own; everything else is a batch. */
async function isBatch({ values, positionals }: CommandInput): Promise<boolean> {
  if (positionals.length > 1 || values.name !== undefined || values.jobs !== undefined || values.watch === true)
    return true
  const [source = ''] = positionals
  if (isAddress(source)) return false
  return (await stat(source).catch(() => undefined))?.isDirectory() === true
}

async function separateOne(input: CommandInput, terminal: Terminal): Promise<number> {
  const request = { ...separationChoice(input), ...songPlaces(input, input.first, 'stems') }
  return await runInForeground(input.isOn('json'), terminal, async (signal, progress) => {
    const report = await separateSong(request, signal, progress)
    return { json: report, text: songSummary(report) }
  })
}
