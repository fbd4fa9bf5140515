import { describe, expect, test } from 'vitest'
import { createSpectra, PhaseTurns, type Spectrum } from '../../../src/core/media/dsp/stretch/phase-turns.js'
import { noise } from '../../separation/tracks.js'
import { type Complex, conjugate, plainTurns, power, product } from './plain-stretch.js'

const size = 64
const half = size / 2

/** The two spectra contained in one: that of the bin, and the conjugate of that of the mirrored bin. */
const sides = (spectrum: Spectrum, bin: number) => [at(spectrum, bin), conjugate(at(spectrum, size - bin))]
const at = ({ re, im }: Spectrum, bin: number): Complex => ({ re: re[bin]!, im: im[bin]! })

/** The turns by definition, of spectra that contain two each. */
function wantedTurns(now: Spectrum[], before: Spectrum[], last: Spectrum[], isAtOnset: boolean): Complex[] {
  const apart = (spectra: Spectrum[]) =>
    spectra.flatMap((each) =>
      [0, 1].map((side) => Array.from({ length: half + 1 }, (_, bin) => sides(each, bin)[side]!)),
    )
  return plainTurns(apart(now), apart(before), apart(last), isAtOnset)
}

function noisy(pairs: number, seed: number): Spectrum[] {
  const spectra = createSpectra(pairs, size)
  spectra.forEach(({ re, im }, pair) => {
    re.set(noise(size, seed + 7 * pair))
    im.set(noise(size, seed + 7 * pair + 1000))
  })
  return spectra
}

/** Largest deviation of the turned noise from that of the wanted turns. */
function errorOf(turns: PhaseTurns, wanted: Complex[]): number {
  const [given] = noisy(1, 99)
  const [found] = noisy(1, 99)
  turns.apply(found!)
  const errors = Array.from({ length: size }, (_, bin) => {
    const turn = bin <= half ? wanted[bin]! : conjugate(wanted[size - bin]!)
    const { re, im } = product(at(given!, bin), turn)
    return Math.hypot(found!.re[bin]! - re, found!.im[bin]! - im)
  })
  return Math.max(...errors)
}

const none = Array.from({ length: half + 1 }, () => ({ re: 1, im: 0 }))

describe('the turns of a frame', () => {
  test.each([1, 2])('of %i pairs of channels are those that fit best around each peak', (pairs) => {
    const turns = new PhaseTurns(size)
    for (let seed = 1; seed <= 10; seed++) {
      const [now, before, last] = [noisy(pairs, seed), noisy(pairs, seed + 100), noisy(pairs, seed + 200)]
      for (const isAtOnset of [false, true]) {
        turns.find(now, before, last, isAtOnset)
        expect(errorOf(turns, wantedTurns(now, before, last, isAtOnset)), `seed ${seed}`).toBeLessThan(1e-9)
      }
    }
  })

  test('are those of peaks at the ends and of flat ones, too', () => {
    const turns = new PhaseTurns(size)
    const levels: ((bin: number) => number)[] = [
      // One side only, so that a level belongs to one bin: rising, falling, and with steps of several bins.
      (bin) => (bin < half ? bin : 0),
      (bin) => (bin < half ? size - bin : 0),
      (bin) => (bin < half ? 1 + Math.floor(bin / 3) : 0),
      (bin) => (bin < half ? 1 + (Math.floor(bin / 2) % 3) : 0),
      (bin) => (bin < half ? 1 + (Math.floor(bin / 4) % 2) : 0),
      (bin) => (bin < half ? 1 + (bin % 2) : 0),
      (bin) => (bin === 1 || bin === half - 1 || bin === 20 ? 1 : 0),
    ]
    for (const [index, level] of levels.entries()) {
      const now = createSpectra(1, size)
      now[0]!.re.forEach((_, bin) => (now[0]!.re[bin] = level(bin)))
      const [before, last] = [noisy(1, index + 1), noisy(1, index + 50)]
      turns.find(now, before, last, false)
      expect(errorOf(turns, wantedTurns(now, before, last, false)), `level ${index}`).toBeLessThan(1e-9)
    }
  })

  test('continue a tone: that of the output so far is turned as the input was', () => {
    const turns = new PhaseTurns(size)
    const tone = (angle: number) => {
      const spectra = createSpectra(1, size)
      spectra[0]!.re[9] = 3 * Math.cos(angle)
      spectra[0]!.im[9] = 3 * Math.sin(angle)
      return spectra
    }
    turns.find(tone(0.4), tone(0.1), tone(0.8), false)
    const [turned] = tone(0.4)
    turns.apply(turned!)
    expect(Math.atan2(turned!.im[9]!, turned!.re[9]!)).toBeCloseTo(0.4 + 0.8 - 0.1, 12)
    expect(power(at(turned!, 9))).toBeCloseTo(9, 12)
  })

  test('are none after silence, and none at an onset where the power has doubled', () => {
    const turns = new PhaseTurns(size)
    const silence = createSpectra(1, size)
    turns.find(noisy(1, 1), noisy(1, 2), silence, false)
    expect(errorOf(turns, none)).toBe(0)
    const before = noisy(1, 3)
    const louder = (factor: number) =>
      before.map(({ re, im }) => ({ re: re.map((value) => value * factor), im: im.map((value) => value * factor) }))
    turns.find(louder(1.5), before, noisy(1, 4), true)
    expect(errorOf(turns, none)).toBe(0)
    turns.find(louder(1.4), before, noisy(1, 4), true)
    expect(errorOf(turns, none)).toBeGreaterThan(0.1)
    const [one, twice] = [createSpectra(1, size), createSpectra(1, size)]
    one[0]!.re[9] = twice[0]!.re[9] = twice[0]!.im[9] = 1
    turns.find(twice, one, noisy(1, 4), true)
    expect(errorOf(turns, none)).toBeGreaterThan(0.1)
  })
})
