import { expect, it } from 'vitest'
import type { Chroma } from '../../src/core/media/analysis/chroma.js'
import { estimateKey } from '../../src/core/media/analysis/key.js'
import { analysisRate, spectralFeatures } from '../../src/core/media/analysis/spectral-features.js'

const roots: Record<string, number> = { C: 0, D: 2, E: 4, F: 5, G: 7, A: 9, B: 11 }

/** Chords of two seconds each, with their roots in the bass. */
function chromaOf(chords: string): Chroma {
  const chroma: Chroma = { all: [], bass: [] }
  for (const chord of chords.split(' ')) {
    const root = roots[chord[0] ?? ''] ?? 0
    const all = new Float32Array(12).fill(0.02)
    for (const step of [0, chord.endsWith('m') ? 3 : 4, 7]) all[(root + step) % 12] = 0.27
    const bass = new Float32Array(12)
    bass[root] = 0.1
    for (let frame = 0; frame < 22; frame++) {
      chroma.all.push(all)
      chroma.bass.push(bass)
    }
  }
  return chroma
}

it.each([
  ['C G Am F C G Am F', 'C major'],
  ['Am F C G Am F C G', 'A minor'],
  ['G C D C G C D G', 'G major'],
  ['Dm G C Am Dm G C C', 'C major'],
  ['Am Dm Em Am Am Dm Em Am', 'A minor'],
  ['Am Dm E Am Am Dm E Am', 'A minor'],
])('distinguishes by the chords %s keys with the same or nearly the same notes: %s', (chords, key) => {
  expect(estimateKey(chromaOf(chords))?.name).toBe(key)
})

it('is more confident the more evidence there is for a key, and finds none without notes', () => {
  const [clear, doubtful] = ['C F G C F G C C', 'C Am C Am C Am C Am'].map((chords) => estimateKey(chromaOf(chords)))
  expect(clear?.confidence).toBeGreaterThan(0.9)
  expect(doubtful?.confidence).toBeLessThan(clear?.confidence ?? 0)
  expect(estimateKey({ all: [new Float32Array(12)], bass: [new Float32Array(12)] })).toBeUndefined()
  expect(estimateKey({ all: [], bass: [] })).toBeUndefined()
})

it('is not confident of a key from a single note, with or without bass', () => {
  const frames = (...tones: number[]) => {
    const frame = new Float32Array(12)
    for (const tone of tones) frame[tone] = 1
    return Array<Float32Array>(40).fill(frame)
  }
  for (const bass of [frames(9), frames()]) expect(estimateKey({ all: frames(9), bass })?.confidence).toBeLessThan(0.2)
})

it('needs about 4 kB for each second of audio', async () => {
  const seconds = 60
  const second = Float32Array.from({ length: analysisRate }, (_, i) => 0.3 * Math.sin(i / 8) + 0.3 * Math.sin(i / 12.7))
  const blocks = (async function* () {
    for (let i = 0; i < seconds; i++) yield { channels: [second] }
  })()
  const { chroma, harmony, ...rest } = await spectralFeatures({
    sampleRate: analysisRate,
    channelCount: 1,
    sampleCount: seconds * analysisRate,
    format: 'tones',
    blocks,
  })
  const kept = [
    ...chroma.all,
    ...chroma.bass,
    ...harmony.treble,
    ...harmony.bass,
    ...rest.timbre,
    rest.onsets,
    rest.lowOnsets,
    rest.accents,
    rest.levels,
  ]
  expect(kept.reduce((sum, { byteLength }) => sum + byteLength, 0) / seconds).toBeLessThan(3900)
})
