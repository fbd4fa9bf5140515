import { badInput } from '../../engine/errors.js'
import type { AudioStream } from '../dsp/audio-stream.js'
import { readChunks } from './chunks.js'
import { damagedFile } from './damaged-file.js'
import type { FileBytes } from './file-bytes.js'
import type { PcmEncoding } from './pcm.js'
import { openPcm } from './pcm-stream.js'
import { UndecodedError } from './undecoded.js'

/** Content of the common chunk (Audio Interchange File Format 1.3; AIFF-C draft of 1991). */
interface Common {
  channelCount: number
  /** Samples per channel. */
  sampleCount: number
  bits: number
  sampleRate: number
  /** Four characters; `NONE` in plain AIFF. */
  compression: string
}

/** The size of a chunk that is still being written. */
const unknownBytes = 0xffff_ffff

/**
 * AIFF and AIFF-C with integers of 8 to 32 bits in either byte order, 32 or 64-bit floats, or G.711.
 *
 * @param start position of the header
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header, `no_audio` for an empty file, UndecodedError
 * for compressed audio
 */
export async function openAiff(file: FileBytes, start: number): Promise<AudioStream> {
  let common: Common | undefined
  let sound: { start: number; bytes: number } | undefined
  for await (const { id, body, size } of readChunks(file, start + 12, 'big-endian')) {
    if (id === 'COMM') common = readCommon(Buffer.from(await file.read(body, Math.min(size, 22))))
    if (id === 'SSND') {
      const offset = Buffer.from(await file.read(body, 8))
      if (offset.length < 8) break
      const skipped = 8 + offset.readUInt32BE(0)
      sound = { start: body + skipped, bytes: size === unknownBytes ? 0 : Math.max(0, size - skipped) }
    }
    if (common && sound) break
  }
  if (!common) throw damagedFile("The AIFF file's common chunk is missing; the file is damaged or was cut off.")
  const { channelCount, sampleCount, sampleRate } = common
  if (sampleCount === 0 && !sound) throw badInput('no_audio', 'The AIFF file holds no audio.')
  const encoding = pcmEncoding(common)
  const stream =
    sound &&
    openPcm(file, {
      format: 'aiff',
      sampleRate,
      channelCount,
      encoding,
      start: sound.start,
      // Writers that stream leave the chunk's size unset.
      statedBytes: sound.bytes || undefined,
    })
  if (!stream) throw damagedFile('The AIFF file ends before its audio begins; it was cut off.')
  return { ...stream, statedSeconds: sampleCount > 0 ? sampleCount / sampleRate : stream.statedSeconds }
}

function readCommon(chunk: Buffer): Common {
  if (chunk.length < 18) throw damagedFile("The AIFF file's common chunk is cut off.")
  const common = {
    channelCount: chunk.readUInt16BE(0),
    sampleCount: chunk.readUInt32BE(2),
    bits: chunk.readUInt16BE(6),
    // An 80-bit float, of which the upper 32 bits of the mantissa suffice.
    sampleRate: chunk.readUInt32BE(10) * 2 ** ((chunk.readUInt16BE(8) & 0x7fff) - 16_383 - 31),
    compression: chunk.length >= 22 ? chunk.toString('latin1', 18, 22) : 'NONE',
  }
  const { channelCount, sampleRate } = common
  if (channelCount === 0 || channelCount > 255 || !(sampleRate > 0 && sampleRate < 2 ** 32))
    throw damagedFile(`The AIFF file's header is damaged: ${channelCount} channels at ${sampleRate} Hz.`)
  return common
}

function pcmEncoding({ compression, bits }: Common): PcmEncoding {
  const bytes = Math.ceil(bits / 8)
  const isInteger = bytes >= 1 && bytes <= 4
  switch (compression) {
    case 'NONE':
    case 'twos':
    case 'in24':
    case 'in32':
      if (isInteger) return { kind: 'signed', bytes, littleEndian: false }
      break
    case 'sowt':
    case '42ni':
    case '23ni':
      if (isInteger) return { kind: 'signed', bytes, littleEndian: true }
      break
    case 'raw ':
      if (bytes === 1) return { kind: 'unsigned', bytes, littleEndian: false }
      break
    case 'fl32':
    case 'FL32':
      return { kind: 'float', bytes: 4, littleEndian: false }
    case 'fl64':
    case 'FL64':
      return { kind: 'float', bytes: 8, littleEndian: false }
    case 'ulaw':
    case 'ULAW':
      return { kind: 'mu-law', bytes: 1, littleEndian: false }
    case 'alaw':
    case 'ALAW':
      return { kind: 'a-law', bytes: 1, littleEndian: false }
    default:
  }
  throw new UndecodedError(
    `The AIFF file stores ${bits}-bit samples as ${JSON.stringify(compression)}, which is not supported; expected ` +
      'uncompressed integers or floats.',
  )
}
