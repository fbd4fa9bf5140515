import { viewOf } from '../../bytes.js'
import { badInput } from '../../../engine/errors.js'
import type { AudioStream } from '../../dsp/audio-stream.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import type { PcmEncoding } from './pcm.js'
import { openPcm } from './pcm-stream.js'
import { UndecodedError } from '../undecoded.js'

/** By the number in the header (`audio/basic` as Sun and NeXT wrote it); all are big-endian. */
const encodings: Record<number, PcmEncoding | undefined> = {
  1: { kind: 'mu-law', bytes: 1, littleEndian: false },
  2: { kind: 'signed', bytes: 1, littleEndian: false },
  3: { kind: 'signed', bytes: 2, littleEndian: false },
  4: { kind: 'signed', bytes: 3, littleEndian: false },
  5: { kind: 'signed', bytes: 4, littleEndian: false },
  6: { kind: 'float', bytes: 4, littleEndian: false },
  7: { kind: 'float', bytes: 8, littleEndian: false },
  27: { kind: 'a-law', bytes: 1, littleEndian: false },
}

/**
 * Opens Sun audio (`.au`, `.snd`) with integers, floats or G.711.
 *
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header, `no_audio` for an empty file, UndecodedError
 * for compressed audio
 */
export async function openAu(file: FileBytes, start: number): Promise<AudioStream> {
  const header = await file.read(start, 24)
  if (header.length < 24) throw damagedFile('The AU file ends within its header; it was cut off.')
  const field = (at: number) => viewOf(header).getUint32(at)
  const [offset, dataBytes, code, sampleRate, channelCount] = [field(4), field(8), field(12), field(16), field(20)]
  if (offset < 24 || channelCount === 0 || channelCount > 255 || sampleRate === 0)
    throw damagedFile(`The AU file's header is damaged: ${channelCount} channels at ${sampleRate} Hz.`)
  const encoding = encodings[code]
  if (!encoding) {
    throw new UndecodedError(
      `The AU file is compressed (encoding ${code}), which is not supported; expected integers, floats or G.711.`,
    )
  }
  const stream = openPcm(file, {
    format: 'au',
    sampleRate,
    channelCount,
    encoding,
    start: start + offset,
    statedBytes: dataBytes === 0xffff_ffff ? undefined : dataBytes,
  })
  if (stream) return stream
  throw dataBytes === 0
    ? badInput('no_audio', 'The AU file holds no audio.')
    : damagedFile('The AU file ends before its audio begins; it was cut off.')
}
