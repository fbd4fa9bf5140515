/** Samples of a track, read piece by piece, so that an hour of audio needs no more memory than a minute. */
export interface PcmSource {
  readonly sampleRate: number
  /** Rises while it is growing. */
  readonly frames: number
  /** Its file is still being written, so there will be more. */
  readonly isGrowing?: boolean
  /** How many there will be, as far as the file that is being separated tells. */
  readonly promisedFrames?: number
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

/** @param read gets the samples from one to before another, which exist */
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

/** Decodes a whole file, or a part of one that is a file of its own. */
export async function decodeAudio(file: ArrayBuffer, sampleRate: number): Promise<Float32Array<ArrayBuffer>[]> {
  const buffer = await new OfflineAudioContext(2, 1, sampleRate).decodeAudioData(file)
  return Array.from({ length: Math.min(2, buffer.numberOfChannels) }, (_, channel) => buffer.getChannelData(channel))
}
