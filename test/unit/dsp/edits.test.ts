import { describe, expect, test } from 'vitest'
import type { AudioBlock, AudioStream, Speaker } from '../../../src/core/media/dsp/audio-stream.js'
import { edited, type Edits, inFileOrder, withChannels } from '../../../src/core/media/dsp/edits.js'
import { blocksOf, collect } from '../../separation/tracks.js'

/** Two channels at 10 Hz, so that a tenth of a second is a sample: 1, 2, 3 ... and 101, 102, 103 ... */
function counting(sampleCount: number, blockSizes = [3]): AudioStream {
  const planes = [1, 101].map((first) => Float32Array.from({ length: sampleCount }, (_, n) => first + n))
  return { sampleRate: 10, channelCount: 2, sampleCount, format: 'test', blocks: blocksOf(planes, blockSizes) }
}

async function collected(blocks: AsyncIterable<AudioBlock>): Promise<AudioBlock[]> {
  const found = []
  for await (const block of blocks) found.push(block)
  return found
}

/** The remaining samples, as factors of the samples from `first` on. */
async function edit(sampleCount: number, edits: Edits, blockSizes?: number[]) {
  const stream = edited(counting(sampleCount, blockSizes), edits)
  const [left, right] = await collect(stream)
  expect(stream.sampleCount).toBe(left!.length)
  return { left: [...left!], right: [...right!] }
}

function scaled(first: number, factors: number[]) {
  return {
    left: factors.map((factor, n) => Math.fround((first + n) * factor)),
    right: factors.map((factor, n) => Math.fround((first + n + 100) * factor)),
  }
}

const ones = (count: number) => Array.from({ length: count }, () => 1)

describe('edits of a stream', () => {
  test('without any, the same blocks pass', async () => {
    const blocks = await collected(counting(8).blocks)
    const stream = { ...counting(8), blocks: asyncOf(blocks) }
    const found = await collected(edited(stream, {}).blocks)
    expect(found).toHaveLength(3)
    found.forEach((block, index) => expect(block).toBe(blocks[index]))
  })

  test.each([[[1]], [[3]], [[100]], [[2, 5]]])('a part is cut out of blocks of %j', async (sizes) => {
    expect(await edit(20, { startSeconds: 0.4, lengthSeconds: 0.7 }, sizes)).toEqual(scaled(5, ones(7)))
    expect(await edit(20, { startSeconds: 0.1 }, sizes)).toEqual(scaled(2, ones(19)))
    expect(await edit(20, { lengthSeconds: 1.2 }, sizes)).toEqual(scaled(1, ones(12)))
    expect(await edit(20, { startSeconds: 1.9, lengthSeconds: 5 }, sizes)).toEqual(scaled(20, ones(1)))
  })

  test('positions are rounded to samples', async () => {
    expect(await edit(20, { startSeconds: 0.26, lengthSeconds: 0.44 })).toEqual(scaled(4, ones(4)))
    expect(await edit(20, { startSeconds: 0.25, lengthSeconds: 0.45 })).toEqual(scaled(4, ones(5)))
  })

  test('nothing is read after the part', async () => {
    let read = 0
    async function* counted() {
      for await (const block of counting(30).blocks) {
        read++
        yield block
      }
    }
    await collect(edited({ ...counting(30), blocks: counted() }, { startSeconds: 0.3, lengthSeconds: 0.6 }))
    expect(read).toBe(3)
  })

  test('6.02 dB are twice the level, on both channels', async () => {
    const { left, right } = await edit(4, { gainDb: 20 * Math.log10(2) })
    expect(left).toEqual([2, 4, 6, 8])
    expect(right).toEqual([202, 204, 206, 208])
    expect((await edit(1, { gainDb: -20 })).right).toEqual([Math.fround(10.1)])
  })

  test.each([[[1]], [[3]], [[100]]])('a fade-in rises from silence in a line, in blocks of %j', async (sizes) => {
    const rise = [0, 0.25, 0.5, 0.75, 1, 1, 1, 1]
    expect(await edit(8, { fadeInSeconds: 0.4 }, sizes)).toEqual(scaled(1, rise))
    expect(await edit(10, { startSeconds: 0.2, fadeInSeconds: 0.4 }, sizes)).toEqual(scaled(3, rise))
    expect(await edit(3, { fadeInSeconds: 0.4 }, sizes)).toEqual(scaled(1, [0, 0.25, 0.5]))
  })

  test.each([[[1]], [[3]], [[4]], [[100]]])('a fade-out ends in silence, in blocks of %j', async (sizes) => {
    const fall = [1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0]
    expect(await edit(9, { fadeOutSeconds: 0.4 }, sizes)).toEqual(scaled(1, fall))
    expect(await edit(20, { startSeconds: 0.1, lengthSeconds: 0.9, fadeOutSeconds: 0.4 }, sizes)).toEqual(
      scaled(2, fall),
    )
  })

  test('a fade-out longer than the audio begins at its start', async () => {
    expect(await edit(4, { fadeOutSeconds: 2 })).toEqual(scaled(1, [0.75, 0.5, 0.25, 0]))
    expect(await edit(1, { fadeOutSeconds: 2 })).toEqual(scaled(1, [0]))
  })

  test('a fade-out shorter than half a sample changes nothing', async () => {
    expect(await edit(4, { fadeOutSeconds: 0.04 })).toEqual(scaled(1, ones(4)))
  })

  test('all of them change a single channel in the same way', async () => {
    const edits = { startSeconds: 0.2, lengthSeconds: 0.8, gainDb: 0, fadeInSeconds: 0.2, fadeOutSeconds: 0.4 }
    const mono = { ...counting(20), channelCount: 1, blocks: blocksOf([Float32Array.from(ones(20))], [3]) }
    expect((await collect(edited(mono, edits))).map((plane) => [...plane])).toEqual([
      [0, 0.5, 1, 1, 0.75, 0.5, 0.25, 0],
    ])
  })

  test('a fade-out holds back no more than its length and a block', async () => {
    const ahead: number[] = []
    let read = 0
    async function* counted() {
      for await (const block of counting(30).blocks) {
        read += block.channels[0]!.length
        yield block
      }
    }
    let passed = 0
    for await (const { channels } of edited({ ...counting(30), blocks: counted() }, { fadeOutSeconds: 0.6 }).blocks) {
      ahead.push(read - passed)
      passed += channels[0]!.length
    }
    expect(ahead).toEqual([9, 9, 9, 9, 9, 9, 9, 9, 6])
  })

  test('an unknown length stays unknown', () => {
    expect(edited({ ...counting(5), sampleCount: undefined }, { lengthSeconds: 0.1 }).sampleCount).toBeUndefined()
  })

  test.each([
    [5, { startSeconds: 0.5 }],
    [5, { startSeconds: 2 }],
    [5, { lengthSeconds: 0.04 }],
    [0, {}],
    [0, { fadeOutSeconds: 1 }],
  ])('if nothing is left of %i samples after %j, that is an error of the input', async (sampleCount, edits) => {
    const stream = edited(counting(sampleCount), edits)
    expect(stream.sampleCount).toBe(0)
    await expect(collected(stream.blocks)).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'no_audio' })
  })
})

describe('a number of channels', () => {
  test('that is unchanged or not requested leaves the stream alone', () => {
    const stream = counting(3)
    expect(withChannels(stream, undefined)).toBe(stream)
    expect(withChannels(stream, 2)).toBe(stream)
    const mono = { ...stream, channelCount: 1 }
    expect(withChannels(mono, 1)).toBe(mono)
  })

  test('one channel is the mean of two', async () => {
    const stream = withChannels(counting(4), 1)
    expect(stream.channelCount).toBe(1)
    expect((await collect(stream)).map((plane) => [...plane])).toEqual([[51, 52, 53, 54]])
  })

  test('two channels of one are alike', async () => {
    const stream: AudioStream = { ...counting(3), channelCount: 1, blocks: blocksOf([Float32Array.of(1, 2, 3)]) }
    const stereo = withChannels(stream, 2)
    expect(stereo.channelCount).toBe(2)
    expect((await collect(stereo)).map((plane) => [...plane])).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
  })
})

describe('the order of channels in files', () => {
  async function order(speakers: Speaker[]) {
    const planes = speakers.map((_, channel) => Float32Array.of(channel))
    const stream = { ...counting(1), channelCount: speakers.length, speakers, blocks: blocksOf(planes) }
    const found = inFileOrder(stream)
    if (found === stream) return 'as it is'
    expect(found.speakers).toBeUndefined()
    return (await collect(found)).map(([channel]) => channel)
  }

  test('is that of WAVE', async () => {
    expect(await order(['centre', 'left', 'right'])).toEqual([1, 2, 0])
    expect(await order(['centre', 'left', 'right', 'surroundLeft', 'surroundRight', 'lfe'])).toEqual([1, 2, 0, 5, 3, 4])
    expect(await order(['left', 'right', 'centre'])).toBe('as it is')
  })

  test('takes speakers that occur twice one after the other', async () => {
    const twice: Speaker[] = ['surroundLeft', 'surroundRight', 'surroundLeft', 'surroundRight']
    expect(await order(['centre', 'lfe', 'left', 'right', ...twice])).toEqual([2, 3, 0, 1, 4, 5, 6, 7])
  })

  test('is kept if WAVE has no order for these speakers', async () => {
    expect(await order(['right', 'centre'])).toBe('as it is')
    expect(await order(['centre', 'right'])).toBe('as it is')
  })
})

async function* asyncOf(blocks: AudioBlock[]): AsyncGenerator<AudioBlock> {
  yield* blocks
}
