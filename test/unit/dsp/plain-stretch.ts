import { onsetFinder } from '../../../src/core/media/dsp/stretch/onset-finder.js'
import { TimeMap } from '../../../src/core/media/dsp/stretch/time-map.js'
import type { TimeStretchOptions } from '../../../src/core/media/dsp/stretch/time-stretch.js'

export interface Complex {
  re: number
  im: number
}

export const conjugate = ({ re, im }: Complex): Complex => ({ re, im: -im })
export const product = (a: Complex, b: Complex): Complex => ({
  re: a.re * b.re - a.im * b.im,
  im: a.re * b.im + a.im * b.re,
})
export const power = ({ re, im }: Complex): number => re * re + im * im
const sum = (terms: Complex[]): Complex =>
  terms.reduce((total, { re, im }) => ({ re: total.re + re, im: total.im + im }), { re: 0, im: 0 })
const one: Complex = { re: 1, im: 0 }

/** The turns of `PhaseTurns`, by the definition: one per bin of these spectra, from 0 to half their size. */
export function plainTurns(now: Complex[][], before: Complex[][], last: Complex[][], isAtOnset: boolean): Complex[] {
  const half = now[0]!.length - 1
  const isInner = (bin: number) => bin > 0 && bin < half
  const powers = (spectra: Complex[][]) =>
    Array.from({ length: half + 1 }, (_, bin) =>
      isInner(bin) ? spectra.reduce((total, spectrum) => total + power(spectrum[bin]!), 0) : 0,
    )
  const [loud, earlier] = [powers(now), powers(before)]
  const fits = loud.map((_, bin) =>
    sum(last.map((spectrum, channel) => product(spectrum[bin]!, conjugate(before[channel]![bin]!)))),
  )
  const peaks = loud.flatMap((here, bin) => {
    const isPeak =
      [1, 2].every((apart) => here > (loud[bin - apart] ?? -1)) &&
      [1, 2].every((apart) => here >= (loud[bin + apart] ?? -1))
    return isInner(bin) && isPeak ? [bin] : []
  })
  // The first of the quietest bins between two peaks belongs to the later one.
  const starts = peaks.map((peak, index) => {
    if (index === 0) return 1
    const between = loud.slice(peaks[index - 1]! + 1, peak)
    return peaks[index - 1]! + 1 + between.indexOf(Math.min(...between))
  })
  const turns = loud.map(() => one)
  for (const [index, start] of starts.entries()) {
    const end = starts[index + 1] ?? half
    const fit = sum(fits.filter((_, bin) => bin >= start && bin < end && Math.abs(bin - peaks[index]!) <= 2))
    const length = Math.sqrt(power(fit))
    turns.fill(length === 0 ? one : { re: fit.re / length, im: fit.im / length }, start, end)
  }
  return turns.map((turn, bin) => (isAtOnset && loud[bin]! > 2 * earlier[bin]! ? one : turn))
}

/** Cosines and sines for a bin of a transform, by the definition. */
function factorsOf(bin: number, size: number): { cosines: number[]; sines: number[] } {
  const angles = Array.from({ length: size }, (_, i) => (2 * Math.PI * ((bin * i) % size)) / size)
  return { cosines: angles.map(Math.cos), sines: angles.map(Math.sin) }
}

const productSum = (a: number[], b: number[]) => a.reduce((total, value, i) => total + value * b[i]!, 0)

/** The transform of real samples, with the bins from 0 to half the size, and its inverse. */
function plainTransform(size: number) {
  const factors = Array.from({ length: size / 2 + 1 }, (_, bin) => factorsOf(bin, size))
  return {
    of: (samples: number[]): Complex[] =>
      factors.map(({ cosines, sines }) => ({ re: productSum(samples, cosines), im: -productSum(samples, sines) })),
    inverse(spectrum: Complex[]): number[] {
      const samples = Array.from({ length: size }, () => 0)
      for (const [bin, { re, im }] of spectrum.entries()) {
        const { cosines, sines } = factors[bin]!
        const share = (bin === 0 || bin === size / 2 ? 1 : 2) / size
        for (let i = 0; i < size; i++) samples[i]! += share * (re * cosines[i]! - im * sines[i]!)
      }
      return samples
    },
  }
}

/**
 * The output of `TimeStretch` by the definition, frame by frame, with frames of `size` samples.
 *
 * @param ratios of the frames; the last ratio holds for all later frames
 * @returns the output and, for each of its hops, the number of input samples that it needs
 */
export function plainStretch(
  planes: readonly Float32Array[],
  ratios: readonly number[],
  size: number,
  { sampleRate, channelCount }: Pick<TimeStretchOptions, 'sampleRate' | 'channelCount'>,
): { output: number[][]; needed: number[] } {
  const hop = size / 4
  const length = planes[0]!.length
  const mix = Array.from({ length: channelCount }, (_, channel) =>
    planes
      .filter((__, index) => index % channelCount === channel)
      .reduce((total, plane) => total.map((value, i) => value + plane[i]!)),
  )
  const map = new TimeMap(size, ratios[0]!)
  for (const onset of onsetFinder(sampleRate, channelCount).push(mix, length)) map.addOnset(onset)
  const window = Array.from({ length: size }, (_, i) => Math.sin((Math.PI * i) / size) ** 2)
  const transform = plainTransform(size)
  const frame = (plane: Float32Array, start: number) => transform.of(window.map((w, i) => w * (plane[start + i] ?? 0)))
  const turnedBy = (spectrum: Complex[], turns: Complex[]) => spectrum.map((value, bin) => product(value, turns[bin]!))
  const output = planes.map(() => Array.from({ length: 8 * length + 8 * size }, () => 0))
  const needed: number[] = []
  let last = mix.map(() => Array.from({ length: size / 2 + 1 }, () => ({ re: 0, im: 0 })))
  let ratio = ratios[0]!
  for (let index = 0; ; index++) {
    const middle = hop - size / 2 + index * hop
    if (index > 0 && index < ratios.length) map.setRatio((ratio = ratios[index]!), middle)
    const position = Math.round(map.inputAt(middle))
    if (position - length > size * (0.5 + 0.5 / ratio)) break
    if (middle >= size / 2) needed.push(position + size / 2 + map.lookAhead)
    const start = position - size / 2
    const now = mix.map((plane) => frame(plane, start))
    const before = mix.map((plane) => frame(plane, start - hop))
    const turns = plainTurns(now, before, last, map.isAtOnset(middle))
    last = now.map((spectrum) => turnedBy(spectrum, turns))
    planes.forEach((plane, channel) =>
      transform.inverse(turnedBy(frame(plane, start), turns)).forEach((value, i) => {
        const at = middle - size / 2 + i
        if (at >= 0) output[channel]![at]! += (window[i]! * value) / 1.5
      }),
    )
  }
  return { output, needed }
}
