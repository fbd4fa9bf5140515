/** Samples of a track, read piece by piece, so that an hour of audio needs no more memory than a minute. */
export interface PcmSource {
  readonly sampleRate: number
  /** Increases while the source grows. */
  readonly frames: number
  /** Whether the file is still being written, so that more frames follow. */
  readonly isGrowing?: boolean
  /** Expected number of frames, if the file that is being separated states it. */
  readonly promisedFrames?: number
  /** One plane per channel, at most two. Fewer frames than requested only at the end. */
  read(fromFrame: number, frames: number, signal: AbortSignal): Promise<Float32Array<ArrayBuffer>[]>
}

/** Reads bytes of a file; both ends included, as in HTTP ranges. */
export type RangeReader = (
  range: { start: number; end?: number },
  signal: AbortSignal,
) => Promise<{ bytes: ArrayBuffer; totalBytes: number }>

/** A file whose format is being detected. */
export interface OpenFile {
  read: RangeReader
  /** Its first bytes. */
  head: ArrayBuffer
  totalBytes: number
  signal: AbortSignal
}

/** @param read reads the samples of a range that exists, without the one at its end */
export function pcmSource(
  { sampleRate, frames }: Pick<PcmSource, 'sampleRate' | 'frames'>,
  read: (from: number, to: number, signal: AbortSignal) => Promise<Float32Array<ArrayBuffer>[]>,
): PcmSource {
  return {
    sampleRate,
    frames,
    async read(from, count, signal) {
      const to = Math.min(from + count, frames)
      return to > from ? read(from, to, signal) : [new Float32Array(0)]
    },
  }
}

/** Decodes a whole file, or a part that was made a separate file. */
export async function decodeAudio(file: ArrayBuffer, sampleRate: number): Promise<Float32Array<ArrayBuffer>[]> {
  const buffer = await new OfflineAudioContext(2, 1, sampleRate).decodeAudioData(file)
  return Array.from({ length: Math.min(2, buffer.numberOfChannels) }, (_, channel) => buffer.getChannelData(channel))
}
