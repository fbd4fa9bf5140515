import { open, rm } from 'node:fs/promises'
import type { AudioEncoder, PeaksState } from '../encode/audio-encoder.js'
import { peakByte } from './peaks-json.js'

export interface GrowingPeaksOptions {
  sampleRate: number
  /** What the source promises; undefined if it promises nothing. */
  sampleCount?: number
  /** Of the peaks that the second file has already; the encoder continues the first from there. */
  from?: PeaksState
}

const samplesPerBin = 512
const headerBytes = 24

/**
 * An encoder that keeps the peaks of what it writes in a second file, to be read while both grow; the end of the first
 * is the end of that one. It is in the binary format of audiowaveform, version 2, of 8 bits: two bytes for each 512
 * samples, the lowest and the highest over all channels. The `length` in its header is of the whole track, as far as
 * its source tells, else 0.
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
      // Behind the samples, so that what is drawn can be played.
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

/** @param from the samples that no bin has yet */
function peakBins(from?: PeaksState) {
  let [filled, lowest, highest] = from?.samples ? [from.samples, from.lowest, from.highest] : [0, Infinity, -Infinity]
  return {
    /** The bins that these samples complete, as bytes, of which negative ones are two's complements. */
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
