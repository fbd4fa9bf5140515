import { openFlac } from './flac-source.js'
import { openMp3 } from './mp3-source.js'
import { wavFormat, wavSource } from './wav-source.js'

/** Samples of a track, read piece by piece, so that an hour of audio needs no more memory than a minute. */
export interface PcmSource {
  readonly sampleRate: number
  readonly frames: number
  /** One plane per channel, at most two. Fewer frames than asked for only at the end. */
  read(fromFrame: number, frames: number, signal: AbortSignal): Promise<Float32Array<ArrayBuffer>[]>
}

/** Reads bytes of a file; both ends included, as in HTTP ranges. */
export type RangeReader = (
  range: { start: number; end?: number },
  signal: AbortSignal,
) => Promise<{ bytes: ArrayBuffer; totalBytes: number }>

/** A file whose format is being found out. */
export interface OpenFile {
  read: RangeReader
  /** Its first bytes. */
  head: ArrayBuffer
  totalBytes: number
  signal: AbortSignal
}

const headerBytes = 64 * 1024

/** WAV, FLAC and MP3 over ranges; any other format that the browser knows is decoded as a whole. */
export async function openPcm(read: RangeReader, signal: AbortSignal): Promise<PcmSource> {
  const { bytes: first, totalBytes } = await read({ start: 0, end: headerBytes - 1 }, signal)
  const head = new DataView(first)
  const wav = wavFormat(head)
  if (wav) return wavSource(read, wav)
  const file = { read, head: first, totalBytes, signal }
  const streamed = (await openFlac(file)) ?? (await openMp3(file))
  if (streamed) return streamed
  return decodedSource((await read({ start: 0 }, signal)).bytes)
}

/** Decodes a whole file, or a part of one that is a file of its own. */
export async function decodeAudio(file: ArrayBuffer, sampleRate: number): Promise<Float32Array<ArrayBuffer>[]> {
  const buffer = await new OfflineAudioContext(2, 1, sampleRate).decodeAudioData(file)
  return Array.from({ length: Math.min(2, buffer.numberOfChannels) }, (_, channel) => buffer.getChannelData(channel))
}

async function decodedSource(file: ArrayBuffer): Promise<PcmSource> {
  const sampleRate = 44_100
  const planes = await decodeAudio(file, sampleRate)
  return {
    sampleRate,
    frames: planes[0]?.length ?? 0,
    read: async (fromFrame, frames) => planes.map((plane) => plane.slice(fromFrame, fromFrame + frames)),
  }
}
