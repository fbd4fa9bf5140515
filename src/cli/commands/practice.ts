import { createReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { checkInput, firstIssueText } from '../../core/engine/workflow/check-input.js'
import { practiceWorkflow } from '../../core/workflows/practice/practice-workflow.js'
import { decimalOf } from '../files/audio-command.js'
import { type Command, type CommandInput, flag, UsageError, valued } from '../command.js'
import { runInForeground } from '../files/foreground-run.js'
import { requirePath } from '../files/local-file.js'
import { separationCommandOptions } from '../workflows/model-options.js'
import { recommendedModelOption, withRecommendedModel } from './recommended-model.js'
import { songOptions } from './separate.js'
import { separateSong, songSummary } from '../files/separate-song.js'
import { separationChoice, songPlaces, type SongRequest } from '../files/separation-request.js'

export const command: Command = {
  usage: 'practice <file or url> [options]',
  description:
    'Writes what singers and players practise with: the accompaniments of a song, the same with its voice as a quiet ' +
    'guide, clicks on its beats, its analysis and, for given words, lyrics with rough times. Audio files are tagged ' +
    'with tempo and key.',
  positionals: { min: 1, max: 1 },
  options: {
    output: valued('dir', 'Folder for the files. Default: "<name of the song>-practice" in this folder.', {
      short: 'o',
    }),
    guide: valued('dB', 'Level of the guide voice, relative to the song. Default: -18.'),
    lyrics: valued('file.txt', 'The words, one line for each sung line.'),
    beats: valued('model', 'Model that finds the beats, pulled before: beat-this-small.'),
    format: songOptions.format,
    'no-tags': songOptions['no-tags'],
    ...separationCommandOptions,
    ...recommendedModelOption,
    json: flag('Print one JSON object with the result or the error on stdout.'),
    'allow-private-inputs': songOptions['allow-private-inputs'],
  },
  notes: 'Lyrics become lyrics.lrc and ultrastar.txt. The sung words are not recognized, so their times are rough.',
  async run(given, terminal) {
    const input = await withRecommendedModel(given, terminal)
    const request = await practiceRequest(input)
    return await runInForeground(input.isOn('json'), terminal, async (signal, progress) => {
      const report = await separateSong(request, signal, progress)
      return { json: report, text: songSummary(report) }
    })
  },
}

async function practiceRequest(input: CommandInput): Promise<SongRequest> {
  const choice = separationChoice(input)
  const workflow = practiceWorkflow({ ...choice.settings, beats: input.text('beats') })
  const guideDb = decimalOf(input, 'guide')
  const lyrics = await lyricsOf(input.text('lyrics'))
  const params = { ...(guideDb === undefined ? {} : { guideDb }), ...(lyrics === undefined ? {} : { lyrics }) }
  const checked = checkInput(workflow.params, { ...params, inputUrl: 'http://localhost/' })
  if (!checked.success) throw new UsageError(`--${firstIssueText(checked, 'options').replace(/^guideDb/, 'guide')}.`)
  return { ...choice, ...songPlaces(input, input.first, 'practice'), workflow, params }
}

/** More than the workflow accepts. */
const mostLyricsBytes = 100_000

async function lyricsOf(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  await requirePath(path)
  // Bounded, because a device or a pipe may have no end.
  const bytes = await buffer(createReadStream(path, { end: mostLyricsBytes }))
  if (bytes.byteLength > mostLyricsBytes)
    throw new UsageError(
      `--lyrics: ${path} is too long: it may have at most ${mostLyricsBytes} bytes. Name a text file.`,
    )
  return bytes.toString('utf8')
}
