import { open, rm } from 'node:fs/promises'
import type { AudioEncoder, PeaksState } from '../encode/audio-encoder.js'
import { peakByte } from './peaks-json.js'

export interface GrowingPeaksOptions {
  sampleRate: number
  /** Length that the source states; undefined if it states none. */
  sampleCount?: number
  /** State of the peaks that the second file already has; the encoder continues the first file from there. */
  from?: PeaksState
}

const samplesPerBin = 512
const headerBytes = 24

/**
 * Wraps an encoder so that it keeps the peaks of its audio in a second file, to be read while both grow; when the
 * first file ends, the second is removed. It has the binary format of audiowaveform, version 2, of 8 bits: two bytes
 * for each 512 samples, the lowest and the highest over all channels. The `length` in its header is that of the whole
 * track if its source states one, else 0.
 */
export async function openGrowingPeaks(
  encoder: AudioEncoder,
  path: string,
  { sampleRate, sampleCount = 0, from }: GrowingPeaksOptions,
): Promise<AudioEncoder> {
  const file = await open(path, from ? 'a' : 'w')
  if (!from) {
    const header = new DataView(new ArrayBuffer(headerBytes))
    const fields = [2, 1, sampleRate, samplesPerBin, Math.ceil(sampleCount / samplesPerBin), 1]
    fields.forEach((value, index) => header.setInt32(4 * index, value, true))
    await file.appendFile(new Uint8Array(header.buffer))
  }
  const bins = peakBins(from)
  let bytes = from?.bytes ?? headerBytes
  const remove = async () => {
    await file.close()
    await rm(path, { force: true })
  }
  return {
    state: encoder.state && (() => ({ ...encoder.state!(), peaks: { path, bytes, ...bins.rest() } })),
    async write(planes) {
      // Appended after the samples, so that all audio with peaks can be played.
      const complete = bins.add(planes)
      await encoder.write(planes)
      await file.appendFile(complete)
      bytes += complete.length
    },
    async close() {
      try {
        return await encoder.close()
      } finally {
        await remove()
      }
    },
    async abandon() {
      await encoder.abandon()
      await remove()
    },
  }
}

/** @param from the samples after the last bin */
function peakBins(from?: PeaksState) {
  let [filled, lowest, highest] = from?.samples ? [from.samples, from.lowest, from.highest] : [0, Infinity, -Infinity]
  return {
    /** The bins that these samples complete, as bytes; negative values are in two's complement. */
    add(planes: readonly Float32Array[]): Uint8Array {
      const length = planes[0]?.length ?? 0
      const bins: number[] = []
      for (let start = 0; start < length;) {
        const end = Math.min(length, start + samplesPerBin - filled)
        for (const plane of planes)
          for (let i = start; i < end; i++) {
            const value = plane[i]!
            if (value < lowest) lowest = value
            if (value > highest) highest = value
          }
        filled += end - start
        start = end
        if (filled < samplesPerBin) break
        bins.push(peakByte(lowest), peakByte(highest))
        ;[filled, lowest, highest] = [0, Infinity, -Infinity]
      }
      return Uint8Array.from(bins)
    },
    rest: () => (filled > 0 ? { samples: filled, lowest, highest } : { samples: 0, lowest: 0, highest: 0 }),
  }
}
