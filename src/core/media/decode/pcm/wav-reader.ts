import { badInput } from '../../../engine/errors.js'
import type { AudioStream } from '../../dsp/audio-stream.js'
import { damagedFile } from '../damaged-file.js'
import type { FileBytes } from '../file-bytes.js'
import type { PcmEncoding } from './pcm.js'
import { openPcm } from './pcm-stream.js'
import { UndecodedError } from '../undecoded.js'
import { readWavHeader, type WavHeader } from './wav-header.js'

const formatInteger = 1
const formatFloat = 3
const formatALaw = 6
const formatMuLaw = 7

/**
 * Opens uncompressed WAV, RF64, BW64, RIFX and Wave64, of 8 to 32-bit integers, 32 or 64-bit floats, or G.711. Files
 * that were cut off or streamed (sizes of 0 or 0xffffffff) are read as far as they go. Returns undefined for compressed
 * data inside a WAV file.
 *
 * @param start position of the header
 * @throws StemworkError `BAD_INPUT`: `decode_failed` for a broken header, `no_audio` for an empty file.
 */
export async function openWav(file: FileBytes, start: number): Promise<AudioStream | undefined> {
  const header = await readWavHeader(file, start)
  const encoding = wavEncoding(header)
  if (!encoding) return undefined
  const { channelCount, sampleRate, speakers, dataStart, dataBytes } = header
  const stream = openPcm(file, {
    format: 'wav',
    sampleRate,
    channelCount,
    encoding,
    start: dataStart,
    statedBytes: dataBytes,
    speakers,
  })
  if (stream) return stream
  throw dataBytes === 0
    ? badInput('no_audio', 'The WAV file holds no audio: its data chunk is empty.')
    : damagedFile('The WAV file ends before its audio begins; it was probably cut off in transit.')
}

/**
 * Encoding of the samples; undefined for compressed data.
 *
 * @throws UndecodedError for a width that is not supported
 */
// oxlint-disable-next-line complexity -- a table of encodings
export function wavEncoding({ formatTag, blockAlign, channelCount, layout }: WavHeader): PcmEncoding | undefined {
  const littleEndian = layout !== 'big-endian'
  // The container's width, not the header's bit count: 12 or 20 bits are stored left-justified in 16 or 24.
  const bytes = blockAlign / channelCount
  if (formatTag === formatFloat && (bytes === 4 || bytes === 8)) return { kind: 'float', bytes, littleEndian }
  if (formatTag === formatInteger && bytes === 1) return { kind: 'unsigned', bytes, littleEndian }
  if (formatTag === formatInteger && (bytes === 2 || bytes === 3 || bytes === 4))
    return { kind: 'signed', bytes, littleEndian }
  if (formatTag === formatALaw && bytes === 1) return { kind: 'a-law', bytes, littleEndian }
  if (formatTag === formatMuLaw && bytes === 1) return { kind: 'mu-law', bytes, littleEndian }
  if (formatTag === formatInteger || formatTag === formatFloat) {
    const expected = 'expected 8, 16, 24 or 32 bits, or 32 or 64-bit floats'
    throw new UndecodedError(`The WAV file stores samples of ${bytes * 8} bits, which is not supported; ${expected}.`)
  }
  return undefined
}
