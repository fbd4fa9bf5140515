import { badInput } from '../../core/engine/errors.js'
import { concat } from '../../core/media/bytes.js'
import { rawBlocks, type RawPcm } from '../../core/media/decode/pcm/raw-pcm.js'
import { readWavHeader } from '../../core/media/decode/pcm/wav-header.js'
import { wavEncoding } from '../../core/media/decode/pcm/wav-reader.js'

/** Samples that come through a pipe. */
export interface PcmPipe extends RawPcm {
  /** One plane for each channel. */
  blocks: AsyncGenerator<Float32Array[], void, void>
}

export function rawPipe(input: AsyncIterable<Uint8Array>, raw: RawPcm): PcmPipe {
  return { ...raw, blocks: rawBlocks(input, raw) }
}

/**
 * Opens a WAV file that is still being written.
 *
 * @throws StemworkError `BAD_INPUT` for anything else
 */
export async function wavPipe(input: AsyncIterable<Uint8Array>): Promise<PcmPipe> {
  const head = pipeHead(input)
  if (!/^(RIFF|RIFX|RF64|BW64)$/.test(String.fromCharCode(...(await head.read(0, 4))))) throw badInput(...notWav)
  const header = await readWavHeader(head, 0)
  const encoding = wavEncoding(header)
  if (!encoding) throw badInput(...notWav)
  const { sampleRate, channelCount, dataStart, dataBytes = Infinity } = header
  const raw = { sampleRate, channelCount, encoding }
  return { ...raw, blocks: rawBlocks(head.rest(dataStart), raw, dataBytes) }
}

const notWav = [
  'unsupported_format',
  'Standard input is not an uncompressed WAV file. Pipe one, for example from ffmpeg -i <file> -f wav -, or name the ' +
    'format of raw samples with --raw, --rate and --channels.',
] as const

/** Most bytes kept for a header: its chunks are small, and longer ones are not worth the memory. */
const longestHead = 16 * 2 ** 20

/** Buffers a pipe while its header is read. */
function pipeHead(source: AsyncIterable<Uint8Array>) {
  const input = source[Symbol.asyncIterator]()
  let bytes: Uint8Array = new Uint8Array(0)
  return {
    size: Infinity,

    async read(position: number, length: number): Promise<Uint8Array> {
      while (bytes.length < position + length && bytes.length < longestHead) {
        const next = await input.next()
        if (next.done) break
        bytes = concat([bytes, next.value])
      }
      return bytes.slice(position, position + length)
    },

    /** Yields everything from `position` on; everything before it must have been read. */
    async *rest(position: number): AsyncGenerator<Uint8Array, void, void> {
      try {
        yield bytes.subarray(position)
        bytes = new Uint8Array(0)
        for (let next = await input.next(); !next.done; next = await input.next()) yield next.value
      } finally {
        await input.return?.()
      }
    },
  }
}
