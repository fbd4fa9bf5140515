import { transcodeWorkflow } from '../../core/workflows/transcode/transcode-workflow.js'
import { audioCommandOptions, decodersOf, runAudioCommand } from '../files/audio-command.js'
import { type Command, flag, valued } from '../command.js'
import { fileEndings, fileFormat } from '../input/file-format.js'

export const command: Command = {
  usage: 'transcode <file> <output> [options]',
  description:
    'Writes audio in another format, rate, number of channels or width; cuts, fades and amplifies; changes tempo ' +
    'and pitch.',
  positionals: { min: 2, max: 2 },
  options: {
    bits: valued('16|24|32', 'Sample width; 32 means floats in WAV. Default: 16.'),
    rate: valued('Hz', 'Sample rate. Default: that of the input.'),
    channels: valued('1|2', 'Number of channels. Default: those of the input.'),
    start: valued('s', 'Skip the audio before this time.'),
    length: valued('s', 'Keep only this many seconds.'),
    'fade-in': valued('s', 'Linear fade at the start.'),
    'fade-out': valued('s', 'Linear fade at the end.'),
    gain: valued('dB', 'Gain; negative values make it quieter.'),
    tempo: valued('ratio', 'Speed at the same pitch: 1.25 is a quarter faster, 0.5 half.'),
    semitones: valued('n', 'Raise the pitch by this many semitones; negative values lower it.'),
    'no-dither': flag('Do not add dither before samples are rounded to integers.'),
    'no-tags': flag("Do not write the input's tags (title, artist, cover, ...) into the output."),
    ...audioCommandOptions,
  },
  notes: `The extension of the output file selects the format: ${fileEndings}.`,
  async run(input, terminal) {
    const path = input.first
    const output = input.positionals[1] ?? ''
    const params = {
      format: fileFormat(output, input.text('bits')),
      sampleRate: input.number('rate', { min: 8000, max: 192_000 }),
      channels: input.number('channels', { min: 1, max: 2 }),
      dither: !input.isOn('no-dither'),
      keepTags: !input.isOn('no-tags'),
    }
    return runAudioCommand(input, terminal, {
      path,
      workflow: transcodeWorkflow({ decoders: decodersOf(input) }),
      params,
      numbers: {
        startSeconds: 'start',
        lengthSeconds: 'length',
        fadeInSeconds: 'fade-in',
        fadeOutSeconds: 'fade-out',
        gainDb: 'gain',
        sampleRate: 'rate',
        tempo: 'tempo',
        semitones: 'semitones',
      },
      label: 'Transcoding',
      keep: { audio: output },
      async report({ details }) {
        const { seconds, sampleRate, channels, clippedSamples, warnings = [] } = details
        const clipped =
          clippedSamples === 0 ? [] : [`${String(clippedSamples)} samples were too loud and were clipped.`]
        const facts =
          `${output}: ${Number(seconds).toFixed(2)} s, ${String(sampleRate)} Hz, ` +
          `${channels === 1 ? 'mono' : `${String(channels)} channels`}`
        const lines = [facts, ...clipped, ...(warnings as string[])]
        return { json: { input: path, output, ...details }, text: lines.map((line) => `${line}\n`).join('') }
      },
    })
  },
}
