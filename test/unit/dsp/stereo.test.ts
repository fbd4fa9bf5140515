import { describe, expect, test } from 'vitest'
import type { AudioStream, Speaker } from '../../../src/core/media/dsp/audio-stream.js'
import { speakersOf, toStereo } from '../../../src/core/media/dsp/stereo.js'
import { collect, streamOf } from '../../separation/tracks.js'

/** Channel `n` sounds at sample `n` alone, at full scale: the output shows each channel's gain. */
function impulses(channelCount: number): Float32Array[] {
  return Array.from({ length: channelCount }, (_, channel) => {
    const plane = new Float32Array(channelCount)
    plane[channel] = 1
    return plane
  })
}

async function gainsOf(channelCount: number, speakers?: readonly Speaker[]): Promise<[number[], number[]]> {
  const [left, right] = await collect(toStereo({ ...streamOf(impulses(channelCount)), speakers }))
  return [[...left!], [...right!]]
}

/** Table 2 of ITU-R BS.775-4, over the sum of the left row's gains. */
const h = Math.SQRT1_2
const layouts: [string, number[], number[]][] = [
  ['mono', [1], [1]],
  ['three', [1, 0, h], [0, 1, h]],
  ['quadro', [1, 0, h, 0], [0, 1, 0, h]],
  ['5.0', [1, 0, h, h, 0], [0, 1, h, 0, h]],
  ['5.1', [1, 0, h, 0, h, 0], [0, 1, h, 0, 0, h]],
  ['6.1', [1, 0, h, 0, 0.5, h, 0], [0, 1, h, 0, 0.5, 0, h]],
  ['7.1', [1, 0, h, 0, h, 0, h, 0], [0, 1, h, 0, 0, h, 0, h]],
  ['nine channels, alternating', [1, 0, 1, 0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1, 0, 1, 0]],
]

describe('down to two channels', () => {
  test.each(layouts)(
    '%s is mixed by the ITU coefficients, and full scale does not clip',
    async (_name, left, right) => {
      const loudest = left.reduce((sum, gain) => sum + gain, 0)
      const expected = [left, right].map((row) => row.map((gain) => Math.fround(gain / loudest)))
      expect(await gainsOf(left.length)).toEqual(expected)
    },
  )

  test('5.1 is scaled by 0.41', async () => {
    const [left] = await gainsOf(6)
    expect(left[0]).toBeCloseTo(0.4142, 4)
  })

  test('speakers that a stream names count instead of the order of WAVE', async () => {
    expect(await gainsOf(3, ['centre', 'lfe', 'right'])).toEqual([
      [h / (1 + h), 0, 0].map(Math.fround),
      [h / (1 + h), 0, 1 / (1 + h)].map(Math.fround),
    ])
  })

  test('channels that are not mixed change nothing, whatever is in them', async () => {
    const planes = impulses(6)
    planes[3]!.fill(Infinity)
    const [left] = await collect(toStereo(streamOf(planes)))
    expect([...left!].every(Number.isFinite)).toBe(true)
  })

  test('gains below full scale are not raised', async () => {
    expect(await gainsOf(3, ['surroundLeft', 'lfe', 'lfe'])).toEqual([
      [Math.fround(h), 0, 0],
      [0, 0, 0],
    ])
  })

  test.each<Speaker>(['centre', 'lfe', 'left'])(
    'a single channel is mono, even if it names a speaker: %s',
    async (name) => {
      expect(await gainsOf(1, [name])).toEqual([[1], [1]])
    },
  )

  test('two channels pass as they are', () => {
    const stream = streamOf(impulses(2))
    expect(toStereo(stream)).toBe(stream)
  })

  test('the stream says that it has two channels, in the usual order', () => {
    const stream: AudioStream = { ...streamOf(impulses(3), 8000), speakers: ['centre', 'left', 'right'] }
    expect(toStereo(stream)).toMatchObject({ channelCount: 2, speakers: undefined, sampleRate: 8000, sampleCount: 3 })
    expect(speakersOf(toStereo(stream))).toEqual(['left', 'right'])
  })
})
