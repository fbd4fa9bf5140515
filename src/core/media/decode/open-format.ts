import { latin1, viewOf } from '../bytes.js'
import type { AudioStream } from '../dsp/audio-stream.js'
import { openAiff } from './pcm/aiff-reader.js'
import { openAu } from './pcm/au-reader.js'
import { openCaf } from './pcm/caf-reader.js'
import { inWaveOrder, matroskaCodec } from './channel-order.js'
import { type CodecLoader, openCodec, openLinks } from './codec-stream.js'
import { declaredMono } from './declared-mono.js'
import type { FileBytes } from './file-bytes.js'
import { openFlac } from './flac/flac-reader.js'
import { mp3Damage } from './mpeg/mp3-damage.js'
import { mp3Links } from './mpeg/mp3-links.js'
import { openMp4 } from './mp4/mp4-stream.js'
import { openOgg } from './ogg/ogg-reader.js'
import type { InputFormat } from './sniff.js'
import { statedSeconds } from './stated-length.js'
import { UndecodedError } from './undecoded.js'
import { openWav } from './pcm/wav-reader.js'
import { withWarnings } from './with-warnings.js'

/** Position of the audio, after tags, and its first bytes. */
export interface Head {
  bytes: Uint8Array
  position: number
}

export interface OpenedFormat {
  stream: AudioStream
  /** The length that a header states, which may be wrong; absent where it follows from the size of the file. */
  seconds?: number
}

/** Small, because a codec may expand each byte of silence to a thousand samples. */
const codecPieceBytes = 16 * 1024

/**
 * Stream properties object's type for video (ASF specification, 10.5); headers with large pictures are cut off here.
 */
const asfVideoStream = '\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b'
const asfHeaderBytes = 1024 * 1024

/**
 * Opens a file of a known format with the decoders of the package.
 *
 * @throws UndecodedError when another decoder might read it; StemworkError `BAD_INPUT` when none should try
 */
// oxlint-disable-next-line complexity -- a case for each format
export async function openFormat(
  file: FileBytes,
  format: InputFormat,
  head: Head,
  load: CodecLoader,
): Promise<OpenedFormat> {
  const decode = (codec: string, pieces = file.pieces({ from: head.position, pieceBytes: codecPieceBytes })) =>
    openCodec({ codec, load, pieces, format, declared: declaredMono(codec) })
  const seconds = await statedSeconds(file, format, head.bytes)
  switch (format) {
    case 'wav':
      return { stream: (await openWav(file, head.position)) ?? (await decode('wav')) }
    case 'aiff':
      return { stream: await openAiff(file, head.position) }
    case 'au':
      return { stream: await openAu(file, head.position) }
    case 'caf':
      return { stream: (await openCaf(file, head.position)) ?? (await decode('caf')) }
    case 'flac': {
      const stream = await openFlac(file, head.position)
      return { stream, seconds: stream.statedSeconds }
    }
    case 'mp4': {
      const sound = await openMp4(file, codecPieceBytes)
      const { seconds, warnings } = sound
      const decoded = inWaveOrder(await decode('mp4', sound.pieces), sound.codec)
      const stream = withWarnings(decoded, () => warnings)
      // The warnings already say what was cut off.
      return { stream: { ...stream, statedSeconds: warnings.length > 0 ? undefined : seconds }, seconds }
    }
    case 'vorbis':
    case 'opus':
    case 'ogg-flac':
      return stating(await openOgg(file, format, codecPieceBytes, load), seconds)
    case 'webm':
    case 'mkv':
      return { stream: inWaveOrder(await decode(format), matroskaCodec(head.bytes)) }
    case 'mp3': {
      const damage = mp3Damage()
      const links = mp3Links(damage.watched(file.pieces({ from: head.position, pieceBytes: codecPieceBytes })))
      const stream = await openLinks({ codec: 'mp3', load, format, declared: declaredMono('mp3') }, links)
      return stating(withWarnings(stream, damage.warnings), seconds)
    }
    default:
      // The decoder would decode the video stream as sound.
      if (format === 'wma' && latin1(await file.read(0, asfHeaderBytes)).includes(asfVideoStream))
        throw new UndecodedError('The file is a Windows Media video (WMV).')
      if (format === 'wavpack' && isSurroundWavpack(head.bytes))
        throw new UndecodedError('The file is WavPack with more than two channels.')
      return stating(await decode(codecNames[format] ?? format), seconds)
  }
}

const stating = (stream: AudioStream, seconds: number | undefined): OpenedFormat => ({
  stream: { ...stream, statedSeconds: seconds },
  seconds,
})

/** More channels than two are divided into several blocks, of which the first is not the last. */
function isSurroundWavpack(head: Uint8Array): boolean {
  return head.length >= 28 && (viewOf(head).getUint32(24, true) & 0x1000) === 0
}

/** Names in `audio-decode` that differ from ours. */
const codecNames: Partial<Record<InputFormat, string>> = { wavpack: 'wv' }
