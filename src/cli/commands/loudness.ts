import { readFile } from 'node:fs/promises'
import { loudnessWorkflow } from '../../core/workflows/loudness/loudness-workflow.js'
import { audioCommandOptions, decimalOf, decodersOf, pathBeside, runAudioCommand } from '../files/audio-command.js'
import { type Command, UsageError, valued } from '../command.js'
import { fileEndings, fileFormat } from '../input/file-format.js'

interface Figures {
  integratedLufs: number | null
  rangeLu: number | null
  maxMomentaryLufs: number | null
  maxShortTermLufs: number | null
  truePeakDbtp: number | null
  samplePeakDbfs: number | null
  warnings?: string[]
}

export const command: Command = {
  usage: 'loudness <file> [options]',
  description:
    'Measures loudness, loudness range and true peak (ITU-R BS.1770-5, EBU R 128), and optionally writes the audio ' +
    'at another loudness.',
  positionals: { min: 1, max: 1 },
  options: {
    picture: valued('file.svg', 'Write a picture of the loudness over time.'),
    normalize: valued('LUFS', 'Write the audio at this integrated loudness, for example -14.'),
    ceiling: valued('dBTP', 'Highest true peak; the audio stays quieter if necessary. Default: -1.'),
    output: valued('file', `File for that audio: ${fileEndings}. Default: "<name> (<n> LUFS).wav" next to the input.`, {
      short: 'o',
    }),
    bits: valued('16|24|32', 'Sample width. Default: 16.'),
    ...audioCommandOptions,
  },
  notes: '--json prints the whole report, with the loudness over time.',
  async run(input, terminal) {
    const path = input.first
    const normalizeTo = decimalOf(input, 'normalize')
    const picture = input.text('picture')
    for (const name of ['ceiling', 'output', 'bits'])
      if (normalizeTo === undefined && input.values[name] !== undefined)
        throw new UsageError(`--${name} is for the audio that --normalize writes. Add --normalize, or leave it out.`)
    if (picture !== undefined && !/\.svg$/i.test(picture))
      throw new UsageError(`The name of the picture must end with .svg, not "${picture}".`)
    const output =
      normalizeTo === undefined
        ? undefined
        : (input.text('output') ?? pathBeside(path, ` (${normalizeTo} LUFS)`, 'wav'))
    const format = output === undefined ? undefined : fileFormat(output, input.text('bits'))
    const keep = {
      ...(output === undefined ? {} : { normalized: output }),
      ...(picture === undefined ? {} : { picture }),
    }
    return runAudioCommand(input, terminal, {
      path,
      workflow: loudnessWorkflow({ decoders: decodersOf(input) }),
      params: { format, picture: picture !== undefined },
      numbers: { normalizeTo: 'normalize', ceiling: 'ceiling' },
      label: 'Measuring',
      keep,
      async report({ outputs, details }) {
        const text = outputs.report === undefined ? '{}' : await readFile(outputs.report.path, 'utf8')
        const figures = JSON.parse(text) as Figures
        const { gainDb } = details
        const json = { input: path, ...(gainDb === undefined ? {} : { gainDb }), outputs: keep, ...figures }
        return { json, text: summary(figures, Object.values(keep)) }
      },
    })
  },
}

function summary(figures: Figures, paths: readonly string[]): string {
  const rows: [string, number | null, string][] = [
    ['Integrated', figures.integratedLufs, 'LUFS'],
    ['Range', figures.rangeLu, 'LU'],
    ['Loudest 400 ms', figures.maxMomentaryLufs, 'LUFS'],
    ['Loudest 3 s', figures.maxShortTermLufs, 'LUFS'],
    ['True peak', figures.truePeakDbtp, 'dBTP'],
    ['Sample peak', figures.samplePeakDbfs, 'dBFS'],
  ]
  const lines = rows.map(
    ([name, value, unit]) => `${name.padEnd(16)}${value === null ? '-' : `${value.toFixed(1)} ${unit}`}`,
  )
  return [...lines, ...paths, ...(figures.warnings ?? [])].map((line) => `${line}\n`).join('')
}
