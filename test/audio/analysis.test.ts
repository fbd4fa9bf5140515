import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { analyzeAudio } from '../../src/core/media/analysis/analyze-audio.js'
import { ChromaGatherer } from '../../src/core/media/analysis/chroma.js'
import { beatScore, rendered } from './rendered-piece.js'

const pieces = [
  { bpm: 120, key: 'C major', beatsPerBar: 4 },
  { bpm: 92, key: 'A minor', beatsPerBar: 4 },
  { bpm: 140, key: 'F# minor', beatsPerBar: 4 },
  { bpm: 104, key: 'D# major', beatsPerBar: 3 },
  { bpm: 84, key: 'G major', beatsPerBar: 4 },
  { bpm: 156, key: 'B minor', beatsPerBar: 4 },
  { bpm: 128, key: 'F major', beatsPerBar: 4, drums: false },
  { bpm: 110, key: 'E major', beatsPerBar: 4, cents: 35 },
] as const

describe('analysis of rendered pieces', () => {
  const keys: [key: string, found: string | undefined][] = []

  it.each(pieces)('finds tempo, beats and bars of $bpm bpm in $key, $beatsPerBar beats a bar', async (piece) => {
    const { stream, beats, downbeats, seconds } = rendered({ ...piece, bars: 10 })
    const found = await analyzeAudio(stream)
    expect(found.seconds).toBeCloseTo(seconds, 2)
    expect(Math.abs((found.tempo?.bpm ?? 0) / piece.bpm - 1)).toBeLessThan(0.01)
    expect(beatScore(found.beats, beats)).toBeGreaterThanOrEqual(0.9)
    expect(found.downbeats?.beatsPerBar).toBe(piece.beatsPerBar)
    expect(beatScore(found.downbeats?.times ?? [], downbeats)).toBeGreaterThanOrEqual(0.9)
    keys.push([piece.key, found.key?.name])
  })

  it('finds the key of at least four in five', () => {
    expect(keys).toHaveLength(pieces.length)
    expect(
      keys.filter(([key, found]) => key === found).length / keys.length,
      JSON.stringify(keys),
    ).toBeGreaterThanOrEqual(0.8)
  })

  it('finds the tempo that people tap, with or without hi-hats on the half beats', async () => {
    const wrong: string[] = []
    let count = 0
    for (const beatsPerBar of [3, 4] as const)
      for (const bpm of [60, 72, 90, 105, 120, 140, 174, 200])
        for (const hats of [true, false]) {
          const bars = Math.max(8, Math.round((15 * bpm) / 60 / beatsPerBar))
          const { tempo } = await analyzeAudio(rendered({ bpm, key: 'A minor', beatsPerBar, bars, hats }).stream)
          count++
          if (!(Math.abs((tempo?.bpm ?? 0) / bpm - 1) < 0.02))
            wrong.push(`${bpm} bpm, ${beatsPerBar} beats a bar, hats: ${hats}: ${tempo?.bpm}`)
          const [chosen, other] = tempo?.candidates ?? []
          expect(chosen?.strength).toBe(tempo?.confidence)
          expect(other!.bpm / chosen!.bpm).toSatisfy((ratio: number) => [0.5, 2].includes(Math.round(2 * ratio) / 2))
        }
    expect(wrong.length / count, wrong.join('\n')).toBeLessThanOrEqual(0.05)
  })

  it('names the tuning, and the silence around the music', async () => {
    const { stream, seconds } = rendered({ bpm: 120, key: 'C major', beatsPerBar: 4, bars: 4, cents: -30 })
    const { key, silence } = await analyzeAudio(stream)
    expect(Math.abs((key?.tuningCents ?? 0) + 30)).toBeLessThanOrEqual(2)
    expect(silence).toEqual([
      { start: 0, end: expect.closeTo(1, 1) },
      { start: expect.closeTo(seconds - 1, 1), end: expect.closeTo(seconds, 1) },
    ])
  })

  it('keeps hardly anything of silence before the music', async () => {
    const gatherer = new ChromaGatherer(22_050 / 8192)
    const silent = new Float32Array(2 * 4097)
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    gatherer.add(silent)
    collect()
    const before = process.memoryUsage().arrayBuffers
    for (let frame = 0; frame < 2000; frame++) gatherer.add(silent)
    const kept = () => {
      collect()
      return process.memoryUsage().arrayBuffers - before
    }
    // The tones of one frame are 3840 bytes. V8 frees the buffers that it has collected a little later.
    await expect.poll(kept).toBeLessThan(500 * 3840)
  })

  it('finds nothing in silence and no confident tempo in a tone, and copes with a few samples', async () => {
    const of = (audio: Float32Array) => {
      const blocks = async function* () {
        yield { channels: [audio, audio] }
      }
      const { stream } = rendered({ bpm: 120, key: 'C major', beatsPerBar: 4, bars: 1 })
      return analyzeAudio({ ...stream, sampleRate: 44_100, channelCount: 2, blocks: blocks() })
    }
    for (const length of [1, 100, 44_100]) {
      const nothing = await of(new Float32Array(length))
      expect(nothing).toMatchObject({ tempo: null, beats: [], downbeats: null, key: null })
    }
    const tone = await of(Float32Array.from({ length: 4 * 44_100 }, (_, i) => 0.5 * Math.sin(i / 16)))
    expect(tone.downbeats?.confidence ?? 0).toBeLessThan(0.5)
  })
})
