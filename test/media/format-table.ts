/** A file that ffmpeg makes from the test signal, and how our decoding of it compares with ffmpeg's. */
export interface TableRow {
  file: string
  /** Encoder arguments. */
  codec: string
  /** Minimum signal-to-noise ratio against ffmpeg's decoding. */
  decibels: number
  /**
   * Our samples relative to ffmpeg's: the difference in position and in number. Formats without a stated length keep
   * the encoder's padding.
   */
  lag?: number
  extraSamples?: number
  /** Whether it contains a picture. */
  isVideo?: boolean
}

/** Identical samples. */
const exact = Infinity
/** Without noise substitution, which is random in every decoder. */
const aac = 'aac -aac_pns 0'

/** Formats that the decoders of the package read. */
export const ownFormats: readonly TableRow[] = [
  { file: 'u8.wav', codec: 'pcm_u8', decibels: exact },
  { file: 's16.wav', codec: 'pcm_s16le', decibels: exact },
  { file: 's24.wav', codec: 'pcm_s24le', decibels: exact },
  { file: 's32.wav', codec: 'pcm_s32le', decibels: exact },
  { file: 'f32.wav', codec: 'pcm_f32le', decibels: exact },
  { file: 'f64.wav', codec: 'pcm_f64le', decibels: exact },
  { file: 'mu-law.wav', codec: 'pcm_mulaw', decibels: exact },
  { file: 'a-law.wav', codec: 'pcm_alaw', decibels: exact },
  { file: 's16.w64', codec: 'pcm_s16le', decibels: exact },
  { file: 'f32.w64', codec: 'pcm_f32le', decibels: exact },
  { file: 's8.aiff', codec: 'pcm_s8', decibels: exact },
  { file: 's16.aiff', codec: 'pcm_s16be', decibels: exact },
  { file: 's24.aiff', codec: 'pcm_s24be', decibels: exact },
  { file: 's32.aiff', codec: 'pcm_s32be', decibels: exact },
  { file: 'sowt.aiff', codec: 'pcm_s16le', decibels: exact },
  { file: 'f32.aiff', codec: 'pcm_f32be', decibels: exact },
  { file: 'f64.aiff', codec: 'pcm_f64be', decibels: exact },
  { file: 'mu-law.aiff', codec: 'pcm_mulaw', decibels: exact },
  { file: 'a-law.aiff', codec: 'pcm_alaw', decibels: exact },
  { file: 's8.au', codec: 'pcm_s8', decibels: exact },
  { file: 's16.au', codec: 'pcm_s16be', decibels: exact },
  { file: 's24.au', codec: 'pcm_s24be', decibels: exact },
  { file: 's32.au', codec: 'pcm_s32be', decibels: exact },
  { file: 'f32.au', codec: 'pcm_f32be', decibels: exact },
  { file: 'mu-law.au', codec: 'pcm_mulaw', decibels: exact },
  { file: 's16.caf', codec: 'pcm_s16be', decibels: exact },
  { file: 's24.caf', codec: 'pcm_s24le', decibels: exact },
  { file: 'f64.caf', codec: 'pcm_f64be', decibels: exact },
  { file: 'mu-law.caf', codec: 'pcm_mulaw', decibels: exact },
  { file: 'a-law.caf', codec: 'pcm_alaw', decibels: exact },
  { file: 's16.flac', codec: 'flac -sample_fmt s16', decibels: exact },
  { file: 's24.flac', codec: 'flac -sample_fmt s32', decibels: exact },
  { file: 'flac.ogg', codec: 'flac -sample_fmt s16', decibels: exact },
  { file: 's16.wv', codec: 'wavpack -sample_fmt s16p', decibels: 80 },
  { file: 'f32.wv', codec: 'wavpack -sample_fmt fltp', decibels: exact },
  { file: 's16.tta', codec: 'tta -sample_fmt s16', decibels: 80 },
  { file: 'alac.m4a', codec: 'alac -sample_fmt s16p', decibels: 80 },
  // The edit list gives the padding to cut off, which ffmpeg 5 leaves at the end.
  { file: 'aac.m4a', codec: aac, decibels: 80, extraSamples: -956 },
  // The encoder's delay, which ffmpeg leaves at the beginning.
  { file: 'aac.aac', codec: aac, decibels: 80, lag: -1024, extraSamples: -1024 },
  { file: 'mp3.mp3', codec: 'libmp3lame -q:a 2', decibels: 100 },
  { file: 'mp2.mp2', codec: 'mp2', decibels: 80 },
  { file: 'vorbis.ogg', codec: 'libvorbis -q:a 6', decibels: 100 },
  { file: 'opus.opus', codec: 'libopus -ar 48000', decibels: 100 },
  { file: 'ac3.ac3', codec: 'ac3', decibels: 50 },
  { file: 'eac3.eac3', codec: 'eac3', decibels: 60 },
  { file: 'dts.dts', codec: 'dca', decibels: 50 },
  { file: 'wma.wma', codec: 'wmav2', decibels: 100 },
  { file: 'aac.mp4', codec: aac, decibels: 80, extraSamples: -956, isVideo: true },
  { file: 'pcm.mov', codec: 'pcm_s16le', decibels: exact, isVideo: true },
  { file: 'pcm24.mov', codec: 'pcm_s24be', decibels: exact, isVideo: true },
  { file: 'aac.mov', codec: aac, decibels: 80, extraSamples: -956, isVideo: true },
  { file: 'aac.mkv', codec: aac, decibels: 80, lag: -1024, extraSamples: -1024, isVideo: true },
  { file: 'flac.mkv', codec: 'flac -sample_fmt s16', decibels: 80, isVideo: true },
  { file: 'opus.webm', codec: 'libopus -ar 48000', decibels: 100, isVideo: true },
  { file: 'mp3.avi', codec: 'libmp3lame', decibels: 100, isVideo: true },
  { file: 'aac.ts', codec: aac, decibels: 80, lag: -1024, extraSamples: -1024, isVideo: true },
  { file: 'mp3.ts', codec: 'libmp3lame -q:a 2', decibels: 80, isVideo: true },
  { file: 'mp2.ts', codec: 'mp2', decibels: 80, isVideo: true },
  { file: 'ac3.m2ts', codec: 'ac3', decibels: 50, isVideo: true },
  { file: 'eac3.ts', codec: 'eac3', decibels: 60 },
  { file: 'vorbis.ogv', codec: 'libvorbis', decibels: 100, extraSamples: -60, isVideo: true },
]

/** Formats that need ffmpeg. */
export const foreignFiles: readonly TableRow[] = [
  // Blu-ray has no such kind of stream, so only ffmpeg reads it.
  { file: 'mp2.m2ts', codec: 'mp2', decibels: exact, isVideo: true },
  { file: 'mp2.mpg', codec: 'mp2', decibels: exact, isVideo: true },
  { file: 'mp3.flv', codec: 'libmp3lame', decibels: exact, isVideo: true },
  { file: 'wmav2.wmv', codec: 'wmav2', decibels: exact, isVideo: true },
  { file: 'mp2.mkv', codec: 'mp2', decibels: exact, isVideo: true },
  { file: 'wavpack.mka', codec: 'wavpack', decibels: exact },
  { file: 'speex.spx', codec: 'libspeex -ar 32000', decibels: exact },
  { file: 'alac.caf', codec: 'alac', decibels: exact },
  { file: 'mp3-in.wav', codec: 'libmp3lame', decibels: exact },
  { file: 'ima4.aiff', codec: 'adpcm_ima_qt', decibels: exact },
  { file: 'truehd.thd', codec: 'truehd', decibels: exact },
]
