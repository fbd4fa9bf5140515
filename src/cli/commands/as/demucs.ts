import { UsageError } from '../../command.js'
import type { OtherProgram, OtherRequest } from './other-program.js'

const wav = { extension: 'wav', kind: '16' }
const sameModel = 'the segments and overlaps are those of the model. Leave it out, or choose another model (-n)'

const devices: Record<string, string> = { cpu: 'cpu', cuda: 'cuda', mps: 'coreml' }

/** demucs 4.0: `python -m demucs`, `demucs.separate`. */
export const demucs: OtherProgram = {
  name: 'demucs',
  start: () => ({ separate: {}, model: 'htdemucs', folder: 'separated', pattern: '{track}/{stem}.{ext}', format: wav }),
  options: {
    name: { short: 'n', value: 'model', does: (request, value) => void (request.model = value) },
    sig: { short: 's', value: 'signature', instead: 'name the model: -n htdemucs' },
    repo: { value: 'folder', instead: 'name a manifest of your own: -n folder/model.json (docs/models.md)' },
    out: { short: 'o', value: 'folder', does: (request, value) => void (request.folder = value) },
    filename: { value: 'pattern', does: setPattern },
    device: {
      short: 'd',
      value: 'device',
      does(request, value) {
        const provider = devices[value.replace(/:\d+$/, '')]
        if (!provider) throw new UsageError(`--device takes ${Object.keys(devices).join(', ')} here, not "${value}".`)
        request.separate.provider = provider
      },
    },
    'two-stems': { value: 'stem', does: twoStems },
    int24: { does: (request) => void (request.format = { ...wav, kind: '24' }) },
    float32: { does: (request) => void (request.format = { ...wav, kind: '32f' }) },
    flac: { does: (request) => void (request.format = { extension: 'flac', kind: 'flac' }) },
    mp3: { does: (request) => void (request.format = { extension: 'mp3', kind: 'mp3' }) },
    'mp3-bitrate': { value: 'kbit/s', only: ['320'], instead: 'MP3 has 320 kbit/s here: leave it out' },
    'mp3-preset': { value: 'n', only: ['2'], instead: 'MP3 has one quality here: leave it out' },
    'clip-mode': {
      value: 'mode',
      only: ['clamp'],
      instead: 'nothing is rescaled, so that the stems add up to the song: --clip-mode clamp, or --float32',
    },
    shifts: { value: 'n', only: ['0', '1'], instead: 'the song is separated once. Leave it out' },
    overlap: { value: 'share', only: ['0.25'], instead: sameModel },
    segment: { value: 'seconds', instead: sameModel },
    'no-split': { instead: 'memory does not grow with the length of the song here. Leave it out' },
    jobs: {
      short: 'j',
      value: 'n',
      does: (request, value) => (value === '0' ? undefined : void (request.separate.threads = value)),
    },
    verbose: { short: 'v', isOfNoEffect: true },
  },
  models: {},
  stemName: (stem) => (stem === 'accompaniments' ? 'no_vocals' : stem),
  pathOf(request, track, stem) {
    const fields: Record<string, string> = {
      track: track.name,
      trackext: track.extension,
      stem,
      ext: request.format.extension,
    }
    const path = (request.pattern ?? '').replace(/\{(\w+)\}/g, (_field, name: string) => fields[name] ?? '')
    return `${request.model}/${path}`
  },
}

function setPattern(request: OtherRequest, value: string): void {
  const [unknown] = [...value.matchAll(/\{(\w*)\}/g)].filter(
    ([, name = '']) => !/^(track|trackext|stem|ext)$/.test(name),
  )
  if (unknown) throw new UsageError(`--filename knows {track}, {trackext}, {stem} and {ext}, not ${unknown[0]}.`)
  request.pattern = value
}

function twoStems(request: OtherRequest, value: string): void {
  if (value !== 'vocals')
    throw new UsageError(
      `--two-stems ${value} has no counterpart: two stems are vocals and what is left. Nearest: --two-stems vocals, ` +
        `or no --two-stems, which writes ${value} and the others.`,
    )
  request.separate.stems = 'vocals,accompaniments'
}
