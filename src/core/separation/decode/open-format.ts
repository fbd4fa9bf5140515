import type { AudioStream } from '../dsp/audio-stream.js'
import { openAiff } from './aiff-reader.js'
import { openAu } from './au-reader.js'
import { refuseLong } from './audio-length.js'
import { openCodec } from './codec-stream.js'
import type { FileBytes } from './file-bytes.js'
import { openFlac } from './flac-reader.js'
import { openMp4 } from './mp4-stream.js'
import { openOgg } from './ogg-reader.js'
import type { InputFormat } from './sniff.js'
import { statedSeconds } from './stated-length.js'
import { UndecodedError } from './undecoded.js'
import { openWav } from './wav-reader.js'

/** Where the audio begins, behind tags, and its first bytes. */
export interface Head {
  bytes: Uint8Array
  position: number
}

/** Small, because a codec may expand each byte of silence to a thousand samples. */
const codecPieceBytes = 16 * 1024

/** Stream properties object's type for video (ASF specification, 10.5); headers with large pictures are cut off here. */
const asfVideoStream = Buffer.from('c0ef19bc4d5bcf11a8fd00805f5c442b', 'hex')
const asfHeaderBytes = 1024 * 1024

/**
 * Opens a file of a known format with the decoders of the package.
 *
 * @throws UndecodedError when another decoder might read it; StemworkError `BAD_INPUT` when none should try
 */
export async function openFormat(
  file: FileBytes,
  format: InputFormat,
  head: Head,
  maxSeconds: number,
): Promise<AudioStream> {
  const pieces = (from = head.position) => file.pieces({ from, pieceBytes: codecPieceBytes })
  switch (format) {
    case 'wav':
      return (await openWav(file, head.position)) ?? openCodec('wav', pieces(), format)
    case 'aiff':
      return openAiff(file, head.position)
    case 'au':
      return openAu(file, head.position)
    case 'flac':
      return openFlac(file, head.position)
    case 'mp4': {
      const sound = await openMp4(file, codecPieceBytes)
      refuseLong(sound.seconds, maxSeconds)
      return withWarnings(await openCodec('mp4', sound.pieces, format), sound.warnings)
    }
    case 'vorbis':
    case 'opus':
    case 'ogg-flac': {
      const seconds = await statedSeconds(file, format, head.bytes)
      refuseLong(seconds, maxSeconds)
      return { ...(await openOgg(file, format, codecPieceBytes)), statedSeconds: seconds }
    }
    case 'wma':
      // The decoder would decode the video stream as sound.
      if (Buffer.from(await file.read(0, asfHeaderBytes)).includes(asfVideoStream))
        throw new UndecodedError('The file is a Windows Media video (WMV).')
      return openCodec('wma', pieces(), format)
    default: {
      const seconds = await statedSeconds(file, format, head.bytes)
      refuseLong(seconds, maxSeconds)
      return { ...(await openCodec(codecNames[format] ?? format, pieces(), format)), statedSeconds: seconds }
    }
  }
}

/** Names in `audio-decode` that differ from ours. */
const codecNames: Partial<Record<InputFormat, string>> = { wavpack: 'wv' }

function withWarnings(stream: AudioStream, warnings: readonly string[]): AudioStream {
  const all: string[] = [...warnings]
  return {
    ...stream,
    warnings: all,
    blocks: (async function* () {
      yield* stream.blocks
      all.push(...(stream.warnings ?? []))
    })(),
  }
}
