import { id3Tag } from '../tags/id3-writer.js'
import { encodedFile } from './local-file.js'
import { bytesPerSample } from './pcm-encoder.js'
import { type PcmBytes, type PcmContainer, openPcmWriter, type PcmWriterOptions } from './pcm-writer.js'

/**
 * Writes an AIFF file, or for floats an AIFF-C file, as audio arrives (Audio Interchange File Format 1.3; AIFF-C draft
 * of 1991).
 */
export async function openAiffWriter(path: string, options: PcmWriterOptions) {
  const container: PcmContainer = {
    header: (bytes) => aiffHeader(options, bytes),
    tagChunks: (tags) => {
      const tag = id3Tag(tags)
      return tag.length === 0 ? tag : chunk('ID3 ', tag)
    },
    isBigEndian: true,
    limit: {
      bytes: 0xffff_ffff - largestOverhead,
      message: 'The audio is too long for an AIFF file, which holds 4 GiB. Choose WAV or FLAC, or a shorter part.',
    },
  }
  return await openPcmWriter(await encodedFile(path, options.from), container, options)
}

const unknownBytes = 0xffff_ffff
/** Room for the header and a tag with the largest cover. */
const largestOverhead = 8 * 1024 * 1024

/** @param bytes absent while the file grows: players read to its end */
function aiffHeader({ sampleRate, channels, format }: PcmWriterOptions, bytes?: PcmBytes): Uint8Array {
  const width = bytesPerSample[format]
  const isFloat = format === '32f'
  const common = Buffer.alloc(18)
  common.writeUInt16BE(channels, 0)
  common.writeUInt32BE((bytes?.data ?? 0) / (width * channels), 2)
  common.writeUInt16BE(width * 8, 6)
  common.set(extended(sampleRate), 8)
  // The name of the compression, after its length.
  const compression = Buffer.from('fl32\x1532-bit floating point', 'latin1')
  const header = Buffer.concat([
    chunk('FORM', Buffer.from(isFloat ? 'AIFC' : 'AIFF')),
    ...(isFloat ? [chunk('FVER', Buffer.from('a2805140', 'hex'))] : []),
    chunk('COMM', isFloat ? Buffer.concat([common, compression]) : common),
    // Two numbers before the samples: their offset and their alignment.
    chunk('SSND', Buffer.alloc(8)),
  ])
  const behind = bytes && bytes.data + (bytes.data % 2) + bytes.tags
  header.writeUInt32BE(behind === undefined ? unknownBytes : header.length - 8 + behind, 4)
  header.writeUInt32BE(bytes ? 8 + bytes.data : unknownBytes, header.length - 12)
  return header
}

/** A positive integer as an 80-bit float: its exponent, and a mantissa with its highest bit set. */
function extended(value: number): Uint8Array {
  const bytes = Buffer.alloc(10)
  const exponent = 31 - Math.clz32(value)
  bytes.writeUInt16BE(16_383 + exponent, 0)
  bytes.writeUInt32BE(value * 2 ** (31 - exponent), 2)
  return bytes
}

function chunk(type: string, content: Uint8Array): Buffer {
  const header = Buffer.alloc(8)
  header.write(type, 'latin1')
  header.writeUInt32BE(content.length, 4)
  return Buffer.concat([header, content, Buffer.alloc(content.length % 2)])
}
