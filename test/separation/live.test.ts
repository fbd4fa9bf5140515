import { join } from 'node:path'
import { beforeAll, describe, expect, it, test } from 'vitest'
import type { LiveSource } from '../../src/core/workflows/separation/live/pcm-source.js'
import { separateStream, type StreamOptions } from '../../src/live.js'
import { blocks, collect, steepest, sumError } from './live-streams.js'
import { writeModel } from './models.js'
import { maskNetwork } from './onnx-graph.js'
import { decibelsAlike, joined, noise, sine } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const rate = 44_100

const folder = temporaryFolder()
/** A model whose vocals are the mixture below 5.5 kHz. */
let lowPass: string
beforeAll(async () => {
  lowPass = await writeModel(
    join(folder, 'low'),
    maskNetwork((bin) => (bin < 512 ? 1 : 0)),
  )
})

/** Separates without deadlines, because this machine may be busy. */
const separated = (source: LiveSource, options: Partial<StreamOptions> = {}) =>
  collect(separateStream(source, { sampleRate: rate, model: lowPass, whenLate: 'wait', ...options }))

describe('the stems of a stream', () => {
  test.each([
    [8000, 1],
    [22_050, 2],
    [44_100, 2],
    [48_000, 1],
    [96_000, 2],
    [48_000, 6],
  ])('have its rate of %i Hz and its %i channels, and add up to it', async (sampleRate, channelCount) => {
    const planes = Array.from({ length: channelCount }, (_, channel) => noise(3 * sampleRate + 17, channel + 1))
    const result = await separated(blocks(planes), { sampleRate })
    expect(sumError(planes, result)).toBeLessThan(1e-6)
    expect(result.parts.every(({ isLate }) => !isLate)).toBe(true)
    expect(result.vocals.map(steepest).filter((step) => step > 0)).toHaveLength(channelCount === 6 ? 5 : channelCount)
  })

  test('are those of the network, without a seam between runs', async () => {
    const low = sine(4 * rate, 440, rate)
    const planes = [low.map((value, i) => value + 0.3 * Math.sin(1.2 * i)), low]
    const { vocals, accompaniments } = await separated(blocks(planes))
    const middle = (samples: Float32Array) => samples.subarray(rate / 2, 3.5 * rate)
    expect(decibelsAlike(middle(vocals[0]!), middle(low))).toBeGreaterThan(60)
    expect(steepest(middle(vocals[0]!))).toBeLessThan(1.01 * steepest(low))
    expect(
      decibelsAlike(
        middle(accompaniments[1]!).map((value, i) => value + middle(low)[i]!),
        middle(low),
      ),
    ).toBeGreaterThan(60)
  })

  test('are the same for blocks of any size, even at another rate', async () => {
    const planes = [noise(60_000), noise(60_000, 2)]
    const options = { sampleRate: 48_000, latencyMs: 400 }
    const expected = await separated(blocks(planes, [60_000]), options)
    for (const sizes of [[480], [1, 7000, 333, 128], [24_001]]) {
      const found = await separated(blocks(planes, sizes), options)
      expect(found.vocals).toEqual(expected.vocals)
      expect(found.accompaniments).toEqual(expected.accompaniments)
    }
  })

  test('of silence are silence, and a burst after it is found', async () => {
    const silence = new Float32Array(150 * rate)
    const burst = sine(rate, 440, rate)
    const { vocals } = await separated(blocks([joined([silence, burst, silence.subarray(0, rate)])], [44_100]))
    expect(vocals[0]!.subarray(0, 149 * rate).every((value) => value === 0)).toBe(true)
    const found = vocals[0]!.subarray(150 * rate, 151 * rate)
    expect(decibelsAlike(found.subarray(9000, 35_000), burst.subarray(9000, 35_000))).toBeGreaterThan(40)
  })

  test('do not depend on later audio: even the level is only that of the past', async () => {
    const quiet = noise(4 * rate).map((value) => 0.01 * value)
    const both = joined([quiet, noise(2 * rate, 2)])
    const options = { model: 'embedded', latencyMs: 1000 }
    const change = await separated(blocks([both]), options)
    const none = await separated(blocks([quiet]), options)
    // Stems of a sample are fixed once the latency has passed.
    const known = 3 * rate
    expect(change.vocals[0]!.subarray(0, known)).toEqual(none.vocals[0]!.subarray(0, known))
    expect(change.vocals[0]!.subarray(rate, known).some((value) => value !== 0)).toBe(true)
    expect(sumError([both], change)).toBeLessThan(1e-6)
  })

  test('of a web stream work, too', async () => {
    const plane = noise(50_000)
    expect(sumError([plane], await separated(ReadableStream.from(blocks([plane]))))).toBeLessThan(1e-6)
  })

  test('of a stream without a sample are none, and one shorter than the latency comes out whole', async () => {
    expect((await separated(blocks([new Float32Array(0)]))).parts).toEqual([])
    expect(sumError([noise(100)], await separated(blocks([noise(100)])))).toBeLessThan(1e-6)
  })

  test('confine a sample that is not a number to itself', async () => {
    const plane = noise(2 * rate)
    plane[rate] = NaN
    plane[rate + 1] = Infinity
    // A network would turn this sample into NaN, for seconds around it.
    plane[rate + 2] = 1e30
    const { vocals, accompaniments } = await separated(blocks([plane]))
    expect(vocals[0]!.every(isFinite)).toBe(true)
    expect(accompaniments[0]!.filter((value) => !isFinite(value))).toHaveLength(2)
  })
})

test.each([
  [{ latencyMs: 249 }, /latencyMs must be 250 to 4000, not 249/],
  [{ latencyMs: NaN }, /latencyMs must be/],
  [{ sampleRate: 44_100.5 }, /sampleRate must be a whole number/],
  [{ model: 'nothing-like-it' }, /There is no model/],
])('refuses %j', async (options, message) => {
  await expect(separated(blocks([noise(10)]), options)).rejects.toThrow(message)
})

test('refuses a block that differs from the first in rate or channels', async () => {
  async function* uneven() {
    yield [noise(5000)]
    yield [noise(10), noise(10)]
  }
  await expect(separated(uneven())).rejects.toThrow(/2 channels of 10 samples; expected 1/)
})

test.each([
  ['integers', [new Int16Array(10)]],
  ['numbers', [[0, 0.1]]],
  ['samples without channels', new Float32Array(10)],
  ['nothing', null],
])('refuses a block of %s', async (_what, block: unknown) => {
  const source = (async function* () {
    yield block as Float32Array[]
  })()
  await expect(separated(source)).rejects.toThrow(/must be a list with a Float32Array for each channel/)
})

describe('the source', () => {
  it('is read no further ahead than the latency, and is closed when the consumer stops', async () => {
    let read = 0
    let isClosed = false
    async function* source() {
      try {
        for (;;) {
          read += 441
          yield [noise(441)]
        }
      } finally {
        isClosed = true
      }
    }
    let done = 0
    for await (const { stems } of separateStream(source(), { sampleRate: rate, model: lowPass, whenLate: 'wait' })) {
      done += stems.vocals[0]!.length
      expect(read - done).toBeLessThan(rate)
      if (done > 3 * rate) break
    }
    expect(isClosed).toBe(true)
  })

  it('that fails fails the stream, with its own error', async () => {
    async function* failing() {
      yield [noise(1000)]
      throw new Error('unplugged')
    }
    await expect(separated(failing())).rejects.toThrow('unplugged')
  })

  it('that is silent does not hold back cancellation', async () => {
    const controller = new AbortController()
    async function* stuck() {
      yield [noise(1000)]
      setImmediate(() => controller.abort(new Error('enough')))
      await new Promise(() => undefined)
    }
    await expect(separated(stuck(), { signal: controller.signal })).rejects.toThrow('enough')
  })
})
