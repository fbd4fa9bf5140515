import type { Levels } from './levels.js'

/**
 * Peaks for players, in the JSON format of audiowaveform, version 2
 * (https://github.com/bbc/audiowaveform/blob/master/doc/DataFormat.md): `data` alternates the lowest and the highest
 * value of every `samples_per_pixel` samples, -128 to 127, over all channels. Peaks.js reads it as it is; for
 * wavesurfer.js divide by 128: `peaks: [data.map((value) => value / 128)]`.
 */
export function peaksJson({ sampleRate, samplesPerBin, lowest, highest }: Levels): string {
  const data: number[] = []
  for (let bin = 0; bin < lowest.length; bin++) data.push(peakByte(lowest[bin]!), peakByte(highest[bin]!))
  return JSON.stringify({
    version: 2,
    channels: 1,
    sample_rate: sampleRate,
    samples_per_pixel: samplesPerBin,
    bits: 8,
    length: lowest.length,
    data,
  })
}

/** A sample in 8 bits. */
export function peakByte(value: number): number {
  // `|| 0`: JSON has no -0, and callers may compare the values.
  return Math.max(-128, Math.min(127, Math.round(value * 128))) || 0
}
