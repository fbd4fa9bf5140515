import type { AudioBlock, AudioStream, Speaker } from '../../dsp/audio-stream.js'
import type { FileBytes } from '../file-bytes.js'
import { decodePcm, type PcmEncoding } from './pcm.js'

const readBytes = 256 * 1024

/** Position and encoding of a file's uncompressed audio. */
export interface PcmLayout {
  format: string
  sampleRate: number
  channelCount: number
  encoding: PcmEncoding
  /** Position of the first sample. */
  start: number
  /** Bytes of audio by the header; undefined if it states none. */
  statedBytes: number | undefined
  speakers?: readonly Speaker[]
}

/** A stream of the file's samples, as far as the file has them; undefined if it has none. */
export function openPcm(file: FileBytes, layout: PcmLayout): AudioStream | undefined {
  const { format, sampleRate, channelCount, encoding, start, statedBytes, speakers } = layout
  const blockBytes = encoding.bytes * channelCount
  const availableBytes = Math.max(0, file.size - start)
  const sampleCount = Math.floor(Math.min(statedBytes ?? Infinity, availableBytes) / blockBytes)
  if (sampleCount === 0) return undefined
  const dataBytes = sampleCount * blockBytes
  const warnings: string[] = []
  return {
    sampleRate,
    channelCount,
    sampleCount,
    statedSeconds: statedBytes === undefined ? undefined : Math.floor(statedBytes / blockBytes) / sampleRate,
    format,
    speakers,
    warnings,
    blocks: readBlocks(file, layout, { from: 0, to: dataBytes }, warnings),
    blocksFrom: (sample) => readBlocks(file, layout, { from: sample * blockBytes, to: dataBytes }, warnings),
  }
}

async function* readBlocks(
  file: FileBytes,
  { encoding, channelCount, start }: PcmLayout,
  { from, to }: { from: number; to: number },
  warnings: string[],
): AsyncGenerator<AudioBlock> {
  const blockBytes = encoding.bytes * channelCount
  let silenced = 0
  const pieceBytes = Math.max(1, Math.floor(readBytes / blockBytes)) * blockBytes
  for await (const bytes of file.pieces({ from: start + from, to: start + to, pieceBytes })) {
    if (bytes.length >= blockBytes) yield { channels: decodePcm(bytes, encoding, channelCount, () => silenced++) }
  }
  if (silenced > 0) warnings.push(`${silenced} samples were no numbers or far too loud to be real, and were silenced.`)
}
