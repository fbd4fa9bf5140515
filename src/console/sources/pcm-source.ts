import { decodeAudio, type PcmSource, type RangeReader } from './pcm.js'
import { sampleLayout, uncompressedSource } from './uncompressed-source.js'

export type { PcmSource, RangeReader } from './pcm.js'

const headerBytes = 64 * 1024

/** Reads WAV, AIFF, FLAC, AAC, Ogg and MP3 over ranges; decodes other formats that the browser knows as a whole. */
export async function openPcm(read: RangeReader, signal: AbortSignal): Promise<PcmSource> {
  const { bytes: first, totalBytes } = await read({ start: 0, end: headerBytes - 1 }, signal)
  const layout = sampleLayout(new DataView(first))
  if (layout) return uncompressedSource(read, layout)
  const { openCompressed } = await import('./compressed-source.js')
  const streamed = await openCompressed({ read, head: first, totalBytes, signal })
  if (streamed) return streamed
  return decodedSource((await read({ start: 0 }, signal)).bytes)
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
