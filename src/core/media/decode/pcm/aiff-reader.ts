import { latin1, viewOf } from '../../bytes.js'
import { badInput } from '../../../engine/errors.js'
import type { AudioStream } from '../../dsp/audio-stream.js'
import { readChunks } from './chunks.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import type { PcmEncoding } from './pcm.js'
import { openPcm } from './pcm-stream.js'
import { UndecodedError } from '../undecoded.js'

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
 * Opens AIFF and AIFF-C with integers of 8 to 32 bits in either byte order, 32 or 64-bit floats, or G.711.
 *
 * @param start position of the header
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header, `no_audio` for an empty file, UndecodedError
 * for compressed audio
 */
export async function openAiff(file: FileBytes, start: number): Promise<AudioStream> {
  let common: Common | undefined
  let sound: { start: number; bytes: number } | undefined
  for await (const { id, body, size } of readChunks(file, start + 12, 'big-endian')) {
    if (id === 'COMM') common = readCommon(await file.read(body, Math.min(size, 22)))
    if (id === 'SSND') {
      const offset = await file.read(body, 8)
      if (offset.length < 8) break
      const skipped = 8 + viewOf(offset).getUint32(0)
      sound = { start: body + skipped, bytes: size === unknownBytes ? 0 : Math.max(0, size - skipped) }
    }
    if (common && sound) break
  }
  if (!common) throw damagedFile("The AIFF file's common chunk is missing; the file is damaged or was cut off.")
  const { channelCount, sampleCount, sampleRate } = common
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
  if (!stream && sampleCount === 0) throw badInput('no_audio', 'The AIFF file holds no audio.')
  if (!stream) throw damagedFile('The AIFF file ends before its audio begins; it was cut off.')
  return { ...stream, statedSeconds: sampleCount > 0 ? sampleCount / sampleRate : stream.statedSeconds }
}

function readCommon(chunk: Uint8Array): Common {
  if (chunk.length < 18) throw damagedFile("The AIFF file's common chunk is cut off.")
  const view = viewOf(chunk)
  const common = {
    channelCount: view.getUint16(0),
    sampleCount: view.getUint32(2),
    bits: view.getUint16(6),
    // An 80-bit float, of which the upper 32 bits of the mantissa suffice.
    sampleRate: view.getUint32(10) * 2 ** ((view.getUint16(8) & 0x7fff) - 16_383 - 31),
    compression: chunk.length >= 22 ? latin1(chunk, 18, 22) : 'NONE',
  }
  const { channelCount, sampleRate } = common
  if (channelCount === 0 || channelCount > 255 || !(sampleRate > 0 && sampleRate < 2 ** 32))
    throw damagedFile(`The AIFF file's header is damaged: ${channelCount} channels at ${sampleRate} Hz.`)
  return common
}

type Stored = Omit<PcmEncoding, 'bytes'>
const big: Stored = { kind: 'signed', littleEndian: false }
const little: Stored = { kind: 'signed', littleEndian: true }

/** By compression; integers have the width of the samples. */
const integers: Record<string, Stored | undefined> = {
  NONE: big,
  twos: big,
  in24: big,
  in32: big,
  sowt: little,
  '42ni': little,
  // libsndfile's spelling.
  '42n1': little,
  '23ni': little,
}

/** Encodings of fixed width. Some programs write the names in capitals. */
const others: [names: string[], PcmEncoding][] = [
  [['fl32', 'FL32'], { kind: 'float', bytes: 4, littleEndian: false }],
  [['fl64', 'FL64'], { kind: 'float', bytes: 8, littleEndian: false }],
  [['ulaw', 'ULAW'], { kind: 'mu-law', bytes: 1, littleEndian: false }],
  [['alaw', 'ALAW'], { kind: 'a-law', bytes: 1, littleEndian: false }],
]

function pcmEncoding({ compression, bits }: Common): PcmEncoding {
  const bytes = Math.ceil(bits / 8)
  const integer = Object.hasOwn(integers, compression) ? integers[compression] : undefined
  if (integer && bytes >= 1 && bytes <= 4) return { ...integer, bytes }
  if (compression === 'raw ' && bytes === 1) return { kind: 'unsigned', bytes, littleEndian: false }
  const other = others.find(([names]) => names.includes(compression))
  if (other) return other[1]
  throw new UndecodedError(
    `The AIFF file stores ${bits}-bit samples as ${JSON.stringify(compression)}, which is not supported; expected ` +
      'uncompressed integers or floats.',
  )
}
