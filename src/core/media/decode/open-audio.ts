import type { AudioStream } from '../dsp/audio-stream.js'
import { loadCodec } from './codecs.js'
import { declaredMono } from './declared-mono.js'
import { fileBytes } from './file-bytes.js'
import { openFfmpeg } from './ffmpeg/ffmpeg-stream.js'
import { localFile } from './local-file.js'
import { isForeign, openSource, type OpenSourceOptions } from './open-source.js'
import { demuxers, type ForeignFormat, foreignFormats, type InputFormat } from './sniff.js'
import { openTransportStream } from './mpeg/transport-stream.js'
import { UndecodedError } from './undecoded.js'

/** Programs that may decode files that the package's decoders cannot. */
export interface Decoders {
  /** `true` for the `ffmpeg` on the `PATH`, or the program's path. */
  ffmpeg?: boolean | string
}

export interface OpenAudioOptions extends Pick<OpenSourceOptions, 'signal' | 'maxSeconds' | 'seek'> {
  decoders?: Decoders
}

/**
 * Opens an audio file, or a video file with sound, for streaming. Memory does not grow with its length.
 *
 * @throws StemworkError `BAD_INPUT`, here or while `blocks` is read: `unsupported_format` (not audio, or audio in a
 * format that cannot be decoded), `no_audio` (empty), `decode_failed` (damaged beyond use) or `too_long`;
 * `MISSING_DEPENDENCY` when ffmpeg is allowed and needed, but cannot be started. Truncated files are read as far as
 * they go.
 */
export async function openAudio(path: string, options: OpenAudioOptions = {}): Promise<AudioStream> {
  const { signal, maxSeconds = Infinity, seek, decoders } = options
  return await openSource(await localFile(path), {
    signal,
    maxSeconds,
    seek,
    load: loadCodec,
    async openOther(format, error) {
      if (!decoders?.ffmpeg || format === 'free-mp3') return await openWithoutFfmpeg(path, format, error, signal)
      const program = decoders.ffmpeg === true ? 'ffmpeg' : decoders.ffmpeg
      const demuxer = isForeign(format) ? foreignFormats[format].demuxer : demuxers[format]
      return await openFfmpeg(path, { program, demuxer, format, signal, maxSeconds })
    },
  })
}

async function openWithoutFfmpeg(
  path: string,
  format: InputFormat | ForeignFormat,
  error: UndecodedError,
  signal: AbortSignal | undefined,
): Promise<AudioStream> {
  // ffmpeg does not know how long the frames are either.
  if (format === 'free-mp3') throw error.toBadInput('Decode it with mpg123 or LAME, and send WAV or FLAC.')
  if (format !== 'mpeg-ts') throw error.toBadInput()
  const file = fileBytes(await localFile(path), signal)
  return await openTransportStream(file, loadCodec, declaredMono).catch((cause: unknown) => {
    throw cause instanceof UndecodedError ? cause.toBadInput() : cause
  })
}
