import { latin1, viewOf } from '../../bytes.js'
import { badInput } from '../../../engine/errors.js'
import type { AudioStream } from '../../dsp/audio-stream.js'
import { readChunks } from './chunks.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import type { PcmEncoding } from './pcm.js'
import { openPcm, type PcmLayout } from './pcm-stream.js'
import { UndecodedError } from '../undecoded.js'

/** The data chunk begins with a count of edits. */
const editCountBytes = 4

/**
 * Opens CAF (Apple Core Audio Format 1.0) with integers of 8 to 32 bits, 32 or 64-bit floats, or G.711. Returns
 * undefined for compressed audio.
 *
 * @param start position of the header
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header, `no_audio` for an empty file, UndecodedError
 * for samples of another width
 */
export async function openCaf(file: FileBytes, start: number): Promise<AudioStream | undefined> {
  let description: ReturnType<typeof readDescription> | undefined
  for await (const { id, body, size } of readChunks(file, start + 8, 'caf')) {
    if (id === 'desc') {
      description = readDescription(await file.read(body, 32))
      if (!description.encoding) return undefined
    }
    if (id !== 'data' || !description?.encoding) continue
    const layout: PcmLayout = {
      format: 'caf',
      ...description,
      encoding: description.encoding,
      start: body + editCountBytes,
      statedBytes: size === Infinity ? undefined : Math.max(0, size - editCountBytes),
    }
    const stream = openPcm(file, layout)
    if (stream) return stream
    if (layout.statedBytes === 0) throw badInput('no_audio', 'The CAF file holds no audio.')
    break
  }
  throw damagedFile('The CAF file ends before its audio begins, or its description is missing; it was cut off.')
}

function readDescription(bytes: Uint8Array): Pick<PcmLayout, 'sampleRate' | 'channelCount'> & {
  encoding: PcmEncoding | undefined
} {
  if (bytes.length < 32) throw damagedFile("The CAF file's description is cut off.")
  const view = viewOf(bytes)
  const sampleRate = view.getFloat64(0)
  const channelCount = view.getUint32(24)
  if (channelCount === 0 || channelCount > 255 || !(sampleRate > 0 && sampleRate < 2 ** 32))
    throw damagedFile(`The CAF file's header is damaged: ${channelCount} channels at ${sampleRate} Hz.`)
  return { sampleRate, channelCount, encoding: encodingOf(view, latin1(bytes, 8, 12), channelCount) }
}

function encodingOf(view: DataView, format: string, channelCount: number): PcmEncoding | undefined {
  const [flags, packetBytes, bits] = [view.getUint32(12), view.getUint32(16), view.getUint32(28)]
  if (format === 'ulaw') return { kind: 'mu-law', bytes: 1, littleEndian: false }
  if (format === 'alaw') return { kind: 'a-law', bytes: 1, littleEndian: false }
  if (format !== 'lpcm') return undefined
  const bytes = bits / 8
  const isFloat = (flags & 1) !== 0
  const widths = isFloat ? [4, 8] : [1, 2, 3, 4]
  if (widths.includes(bytes) && packetBytes === bytes * channelCount)
    return { kind: isFloat ? 'float' : 'signed', bytes, littleEndian: (flags & 2) !== 0 }
  throw new UndecodedError(
    `The CAF file stores samples of ${bits} bits in ${packetBytes / channelCount} bytes, which is not supported; ` +
      'expected 8, 16, 24 or 32 bits, or 32 or 64-bit floats, without padding.',
  )
}
