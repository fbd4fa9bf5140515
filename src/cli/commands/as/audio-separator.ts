import { knownModels } from '../../../core/models/known-models.js'
import { UsageError } from '../../command.js'
import type { OtherOption, OtherProgram, OtherRequest } from './other-program.js'

const formats: Record<string, OtherRequest['format']> = {
  WAV: { extension: 'wav', kind: '16' },
  FLAC: { extension: 'flac', kind: 'flac' },
  MP3: { extension: 'mp3', kind: 'mp3' },
  AIFF: { extension: 'aiff', kind: 'aiff' },
}
const stems: Record<string, string> = { vocals: 'Vocals', accompaniments: 'Instrumental' }
const ofTheModel = 'windows and overlaps are those of the model. Leave it out, or choose another model (-m)'
const ensembles = 'stemwork separate --preset <name>; "stemwork models presets" lists them'
const noEffect: OtherOption = { isOfNoEffect: true }

/** audio-separator 0.47. */
export const audioSeparator: OtherProgram = {
  name: 'audio-separator',
  start: () => ({
    separate: {},
    model: 'model_bs_roformer_ep_317_sdr_12.9755.ckpt',
    folder: '.',
    format: { extension: 'flac', kind: 'flac' },
  }),
  options: {
    model_filename: { short: 'm', value: 'file', does: (request, value) => void (request.model = value) },
    output_format: { value: 'format', does: setFormat },
    output_bitrate: { value: 'bitrate', only: ['320k'], instead: 'MP3 has 320 kbit/s here: leave it out' },
    output_dir: { value: 'folder', does: (request, value) => void (request.folder = value) },
    model_file_dir: { value: 'folder', instead: 'set the variable STEMWORK_MODELS to the folder of the models' },
    single_stem: { value: 'stem', does: (request, value) => void (request.only = value) },
    custom_output_names: { value: 'json', does: setNames },
    extra_models: { value: 'file', instead: ensembles },
    ensemble_preset: { value: 'name', instead: ensembles },
    ensemble_algorithm: { value: 'name', instead: ensembles },
    ensemble_weights: { value: 'weights', instead: ensembles },
    list_presets: { instead: 'stemwork models presets' },
    list_models: { short: 'l', instead: 'stemwork models list' },
    list_filter: { value: 'text', instead: 'stemwork models list' },
    list_limit: { value: 'n', instead: 'stemwork models list' },
    list_format: { value: 'format', instead: 'stemwork models list --json' },
    download_model_only: { instead: 'stemwork models pull <name>' },
    env_info: { short: 'e', instead: 'stemwork doctor' },
    normalization: {
      value: 'peak',
      only: ['1.0', '1'],
      instead: 'the stems add up to the song. stemwork loudness --normalize changes a file afterwards',
    },
    amplification: {
      value: 'peak',
      only: ['0', '0.0'],
      instead: 'stemwork transcode --gain changes a file afterwards',
    },
    sample_rate: { value: 'Hz', only: ['44100'], instead: 'stemwork transcode --rate changes a file afterwards' },
    invert_spect: { instead: 'the second stem is the song without the first, sample for sample. Leave it out' },
    use_directml: { does: (request) => void (request.separate.provider = 'dml') },
    use_autocast: noEffect,
    use_native_fp16: noEffect,
    use_soundfile: noEffect,
    use_torch_compile: noEffect,
    chunk_duration: { value: 'seconds', ...noEffect },
    debug: { short: 'd', ...noEffect },
    log_level: { value: 'level', ...noEffect },
    mdx_segment_size: { value: 'n', only: ['256'], instead: ofTheModel },
    mdx_overlap: { value: 'share', only: ['0.25'], instead: ofTheModel },
    mdx_batch_size: { value: 'n', ...noEffect },
    mdx_hop_length: { value: 'n', only: ['1024'], instead: ofTheModel },
    mdx_enable_denoise: { instead: ofTheModel },
    demucs_segment_size: { value: 'n', only: ['Default'], instead: ofTheModel },
    demucs_shifts: { value: 'n', only: ['0', '1'], instead: 'the song is separated once. Leave it out' },
    demucs_overlap: { value: 'share', only: ['0.25'], instead: ofTheModel },
    demucs_segments_enabled: { value: 'bool', only: ['True'], instead: ofTheModel },
    mdxc_segment_size: { value: 'n', only: ['256'], instead: ofTheModel },
    mdxc_override_model_segment_size: { instead: ofTheModel },
    mdxc_overlap: { value: 'n', instead: ofTheModel },
    mdxc_batch_size: { value: 'n', ...noEffect },
    mdxc_pitch_shift: { value: 'n', only: ['0'], instead: ofTheModel },
    ...Object.fromEntries(
      ['batch_size', 'window_size', 'aggression', 'post_process_threshold'].map((name) => [
        `vr_${name}`,
        { value: 'n', instead: 'there are no VR models here. -m Kim_Vocal_2.onnx is a model of another kind' },
      ]),
    ),
    ...Object.fromEntries(
      ['enable_tta', 'high_end_process', 'enable_post_process'].map((name) => [
        `vr_${name}`,
        { instead: 'there are no VR models here. -m Kim_Vocal_2.onnx is a model of another kind' },
      ]),
    ),
  },
  models: {
    'htdemucs.yaml': 'htdemucs',
    'vocals_mel_band_roformer.ckpt': 'mel-band-roformer-kim-fp16',
    ...Object.fromEntries(
      knownModels.flatMap(({ facts, files: [file] }) =>
        file?.file.endsWith('.onnx') ? [[file.file, facts.name]] : [],
      ),
    ),
  },
  stemName: (stem) => stems[stem] ?? stem.charAt(0).toUpperCase() + stem.slice(1),
  pathOf({ names = {}, model, format }, track, stem) {
    const named = Object.entries(names).find(([name]) => name.toLowerCase() === stem.toLowerCase())?.[1]
    const base = model.replace(/^.*[/\\]/, '').replace(/\.[^.]+$/, '')
    return `${named === undefined ? `${safe(track.name)}_(${stem})_${safe(base)}` : safe(named)}.${format.extension}`
  },
}

function setFormat(request: OtherRequest, value: string): void {
  const format = formats[value.toUpperCase()]
  if (!format) throw new UsageError(`--output_format takes ${Object.keys(formats).join(', ')} here, not "${value}".`)
  request.format = format
}

function setNames(request: OtherRequest, value: string): void {
  const names: unknown = parsed(value)
  if (typeof names !== 'object' || names === null || !Object.values(names).every((name) => typeof name === 'string'))
    throw new UsageError('--custom_output_names takes JSON such as {"Vocals": "voice"}.')
  request.names = names as Record<string, string>
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Makes a file name safe as audio-separator does. */
function safe(name: string): string {
  return name
    .replace(/[<>:"/\\|?*]/g, '_')
    .replace(/_+/g, '_')
    .replace(/^[_. ]+|[_. ]+$/g, '')
}
