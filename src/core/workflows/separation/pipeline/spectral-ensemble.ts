import { FloatPlanes } from '../../../media/dsp/float-planes.js'
import { type SpectrumLayout, Stft } from '../../../media/dsp/stft.js'
import type { StemName, Stems } from '../../../models/stems.js'
import { alignedBlocks, type EnsembleMember } from './aligned-blocks.js'
import type { Band, EnsembleStatistic } from '../../../models/ensemble-algorithm.js'
import { combineValues } from './combine-values.js'
import type { StemBlock } from './estimation.js'

export interface SpectralMember extends EnsembleMember {
  /** Frequencies at which the member takes part. Default: all. */
  band?: Band
}

const size = 2048
const hop = 1024
const bins = size / 2 + 1
/** Samples by which a frame reaches beyond a chunk. */
const reach = size - hop
const hopsPerChunk = 32
const chunkSamples = hopsPerChunk * hop
const windowSamples = reach + chunkSamples + reach
const frames = hopsPerChunk + size / hop - 1
const layout: SpectrumLayout = { frameStride: bins, binStride: 1 }

/** Bins in which the same members take part. */
interface Range {
  from: number
  to: number
  members: number[]
}

/**
 * Combines several estimates into one, frequency by frequency: frames of 2048 samples around every 1024th sample of the
 * track, which is silent before its start and after its end. The mixture is taken from the first member.
 */
export async function* combinedSpectra(
  members: readonly SpectralMember[],
  stems: readonly StemName[],
  { statistic, sampleRate }: { statistic: EnsembleStatistic; sampleRate: number },
): AsyncGenerator<StemBlock, void, void> {
  const stft = await Stft.create({ size, hop })
  const ranges = rangesOf(members, sampleRate)
  const spectra = [...members, undefined].map(() => [new Float32Array(frames * bins), new Float32Array(frames * bins)])
  const windows = members.map(() => new Map(stems.map((stem) => [stem, slidingPlanes()])))
  const combined = new Map(stems.map((stem) => [stem, new FloatPlanes()]))
  const mixture = slidingPlanes()
  // The silence before the track.
  let filled = reach

  const chunk = (sampleCount: number): StemBlock => {
    const made: Stems = {}
    for (const [stem, planes] of combined) {
      made[stem] = planes.take(mixture.length, windowSamples).map((plane, channel) => {
        windows.forEach((of, member) => {
          const [re, im] = spectra[member]!
          const [wave] = [of.get(stem)?.[channel]]
          if (wave) stft.forward(wave, frames, re!, im!, layout)
        })
        combineSpectra(spectra, ranges, members, statistic)
        const [re, im] = spectra[members.length]!
        stft.inverse(re!, im!, frames, layout, plane)
        return plane.subarray(reach, reach + sampleCount)
      })
    }
    return { sampleCount, stems: made, mixture: mixture.map((plane) => plane.subarray(reach, reach + sampleCount)) }
  }
  const allPlanes = () => [...mixture, ...windows.flatMap((of) => [...of.values()].flat())]

  try {
    for await (const blocks of alignedBlocks(members)) {
      const { sampleCount } = blocks[0]!
      for (let from = 0; from < sampleCount;) {
        const count = Math.min(windowSamples - filled, sampleCount - from)
        const put = (into: Float32Array[], given: readonly Float32Array[]) =>
          into.forEach((plane, channel) => plane.set(given[channel]!.subarray(from, from + count), filled))
        put(mixture, blocks[0]!.mixture)
        windows.forEach((of, member) => {
          for (const [stem, into] of of) put(into, blocks[member]!.stems[stem] ?? [])
        })
        from += count
        filled += count
        if (filled < windowSamples) continue
        yield chunk(chunkSamples)
        for (const plane of allPlanes()) plane.copyWithin(0, chunkSamples)
        filled -= chunkSamples
      }
    }
    for (let left = filled - reach; left > 0; left -= chunkSamples) {
      for (const plane of allPlanes()) plane.fill(0, reach + left)
      yield chunk(Math.min(left, chunkSamples))
      for (const plane of allPlanes()) plane.copyWithin(0, chunkSamples)
    }
  } finally {
    stft.close()
  }
}

/** Whether at least one member takes part at every frequency. */
export function coversAllFrequencies(bands: readonly (Band | undefined)[]): boolean {
  let upTo = 0
  for (const { from, to } of bands.map((band) => band ?? everything).sort((one, other) => one.from - other.from))
    if (from <= upTo) upTo = Math.max(upTo, to)
  return upTo === Infinity
}

const everything: Band = { from: 0, to: Infinity }
const channels = 2

function slidingPlanes(): Float32Array[] {
  return Array.from({ length: channels }, () => new Float32Array(windowSamples))
}

/** Writes the combined spectrum after those of the members. */
function combineSpectra(
  spectra: readonly Float32Array[][],
  ranges: readonly Range[],
  members: readonly SpectralMember[],
  statistic: EnsembleStatistic,
): void {
  const [outRe, outIm] = spectra[members.length]!
  for (let frame = 0; frame < frames; frame++) {
    for (const { from, to, members: taking } of ranges) {
      const cut = (values: Float32Array) => values.subarray(frame * bins + from, frame * bins + to)
      const re = taking.map((member) => cut(spectra[member]![0]!))
      const im = taking.map((member) => cut(spectra[member]![1]!))
      const weights = taking.map((member) => members[member]!.weight)
      combineValues(statistic, { re, im, weights }, { re: cut(outRe!), im: cut(outIm!) })
    }
  }
}

function rangesOf(members: readonly SpectralMember[], sampleRate: number): Range[] {
  const firstBin = (hertz: number) => Math.min(bins, Math.max(0, Math.ceil((hertz * size) / sampleRate)))
  const bands = members.map(({ band = everything }) => ({ from: firstBin(band.from), to: firstBin(band.to) }))
  const edges = [...new Set([0, bins, ...bands.flatMap(({ from, to }) => [from, to])])].sort((a, b) => a - b)
  return edges.slice(1).map((to, index) => {
    const from = edges[index]!
    return {
      from,
      to,
      members: bands.flatMap((band, member) => (band.from <= from && to <= band.to ? [member] : [])),
    }
  })
}
