import { describe, expect, it } from 'vitest'
import { analyzeAudio } from '../../src/core/media/analysis/analyze-audio.js'
import { canvas } from './rendered-piece.js'

const roots: Record<string, number> = { C: 0, D: 2, E: 4, F: 5, G: 7, A: 9, B: 11 }
const qualities: Record<string, number[]> = {
  '': [0, 4, 7],
  m: [0, 3, 7],
  7: [0, 4, 7, 10],
  maj7: [0, 4, 7, 11],
  m7: [0, 3, 7, 10],
}
const beat = 0.5

interface Part {
  /** One chord per bar of four beats; `N` for drums alone. */
  chords: string
  /** Default: true. */
  drums?: boolean
  octave?: number
}

/** A song of bass, chords and drums, and the times of its chords. */
function song(parts: readonly Part[], { cents = 0 } = {}) {
  const bars = parts.flatMap(({ chords, ...rest }) => chords.split(' ').map((name) => ({ name, ...rest })))
  const { tone, add, random, stream } = canvas(4 * beat * bars.length, cents)
  const chords = bars.map(({ name }, bar) => ({ name, start: 4 * beat * bar, end: 4 * beat * (bar + 1) }))
  for (const [bar, { name, drums = true, octave = 5 }] of bars.entries()) {
    const start = 4 * beat * bar
    const [, letter = '', sharp = '', suffix = ''] = /^([A-GN])(#?)(.*)$/.exec(name) ?? []
    const root = (roots[letter] ?? 0) + (sharp ? 1 : 0)
    for (let index = 0; index < 4; index++) {
      const at = start + index * beat
      if (drums && index % 2 === 0) add(at, 0.15, (t) => 0.6 * Math.exp(-25 * t) * Math.sin(2 * Math.PI * 55 * t))
      if (drums && index % 2 === 1) add(at, 0.12, (t) => 0.3 * Math.exp(-30 * t) * (2 * random() - 1))
      if (letter === 'N') continue
      for (const step of qualities[suffix] ?? []) tone(at, beat, 12 * octave + root + step, 0.12)
      tone(at, beat, 36 + root, 0.3)
    }
  }
  return { stream, chords, seconds: 4 * beat * bars.length }
}

/** The share of the time with the right name. */
function share(expected: readonly { start: number; end: number; name: string }[], found: typeof expected): number {
  let right = 0
  for (const one of expected)
    for (const other of found)
      if (one.name === other.name) right += Math.max(0, Math.min(one.end, other.end) - Math.max(one.start, other.start))
  return right / expected[expected.length - 1]!.end
}

function triads<Chord extends { name: string }>(chords: readonly Chord[]): Chord[] {
  return chords.map((chord) => ({ ...chord, name: chord.name.replace(/(maj)?7$/, '') }))
}

describe('chords', () => {
  it.each([
    ['triads', 'C Am F G C Am Dm G'],
    ['sevenths', 'Dm7 G7 Cmaj7 Cmaj7 Dm7 G7 Am7 A7'],
    ['chords with sharps', 'F#m D#m B C#7 F#m A#m G#m7 C#'],
    ['triads and bars of drums alone', 'Em C N N G D N N'],
  ])('names %s: %s', async (_, chords) => {
    const { stream, chords: expected } = song([{ chords: `${chords} ${chords}` }])
    const found = await analyzeAudio(stream)
    expect(share(expected, found.chords), JSON.stringify(found.chords)).toBeGreaterThanOrEqual(0.7)
    expect(share(triads(expected), triads(found.chords))).toBeGreaterThanOrEqual(0.9)
  })

  it('changes chords at beats, without a gap from the start to the end', async () => {
    const { stream, seconds } = song([{ chords: 'C G Am F C G Am F' }])
    const { chords, beats } = await analyzeAudio(stream)
    expect(chords[0]?.start).toBe(0)
    expect(chords.at(-1)?.end).toBeCloseTo(seconds, 2)
    for (const [i, { start }] of chords.slice(1).entries()) {
      expect(start).toBe(chords[i]!.end)
      expect(beats.some((time) => Math.abs(time - start) < 0.01)).toBe(true)
    }
  })

  it('are named even without drums and when tuned a third of a semitone off', async () => {
    const parts = [{ chords: 'C Am F G C Am Dm G', drums: false }]
    for (const cents of [0, 33, -33]) {
      const { stream, chords } = song(parts, { cents })
      expect(share(chords, (await analyzeAudio(stream)).chords)).toBeGreaterThanOrEqual(0.9)
    }
  })

  it('names none in noise and silence', async () => {
    for (const level of [0, 0.2]) {
      const { add, random, stream } = canvas(8)
      add(0, 8, () => level * (2 * random() - 1))
      expect((await analyzeAudio(stream)).chords).toEqual([{ start: 0, end: 8, name: 'N' }])
    }
  })
})

describe('sections', () => {
  const verse = { chords: 'C Am F G C Am F G' }
  const chorus = { chords: 'F G Em Am F G C C', octave: 6 }
  const bridge = { chords: 'Dm Dm A# A# Dm Dm A7 A7', drums: false }

  it.each([
    ['ABAB', [verse, chorus, verse, chorus]],
    ['ABACB', [verse, chorus, verse, bridge, chorus]],
    ['ABA', [verse, verse, bridge, verse]],
  ])('that repeat have the same letter: %s', async (letters, parts) => {
    const { stream, seconds } = song(parts)
    const { sections } = await analyzeAudio(stream)
    expect(sections.map(({ label }) => label).join('')).toBe(letters)
    expect([sections[0]?.start, sections.at(-1)?.end]).toEqual([0, seconds])
    let bars = 0
    const borders = parts.map(({ chords }) => (bars += chords.split(' ').length) * 4 * beat)
    // Tolerance of two bars: the last bars of a part may sound like the next part.
    for (const { end } of sections)
      expect(Math.min(...borders.map((border) => Math.abs(border - end)))).toBeLessThanOrEqual(8.1 * beat)
  })

  it('are a single one if nothing changes, and none if there is less than a second of audio', async () => {
    const { stream } = song([verse, verse, verse])
    expect((await analyzeAudio(stream)).sections.map(({ label }) => label)).toEqual(['A'])
    expect((await analyzeAudio(canvas(0.5).stream)).sections).toEqual([])
  })
})
