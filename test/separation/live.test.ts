import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { AudioBlock } from '../../src/core/media/dsp/audio-stream.js'
import type { Architecture } from '../../src/core/workflows/separation/architectures/architecture.js'
import { coreSpeed } from '../../src/core/workflows/separation/live/core-speed.js'
import type { Clock } from '../../src/core/workflows/separation/live/deadline.js'
import { LiveEstimator } from '../../src/core/workflows/separation/live/live-estimator.js'
import type { LiveStems } from '../../src/core/workflows/separation/live/live-mix.js'
import type { LiveWorker } from '../../src/core/workflows/separation/live/live-worker.js'
import type { LiveSource } from '../../src/core/workflows/separation/live/pcm-source.js'
import { separateLive } from '../../src/core/workflows/separation/live/separate-live.js'
import { separateStream, type StreamOptions } from '../../src/live.js'
import { writeModel } from './models.js'
import { maskNetwork } from './onnx-graph.js'
import { decibelsAlike, joined, maxDifference, noise, sine } from './tracks.js'

const rate = 44_100

let folder: string
/** Its vocals are the mixture below 5.5 kHz. */
let lowPass: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stemwork-'))
  lowPass = await writeModel(
    join(folder, 'low'),
    maskNetwork((bin) => (bin < 512 ? 1 : 0)),
  )
})
afterAll(() => rm(folder, { recursive: true }))

/** The planes in blocks of these sizes, by turns. */
async function* blocks(planes: Float32Array[], sizes: readonly number[] = [1024]): AsyncGenerator<Float32Array[]> {
  for (let from = 0, turn = 0; from < planes[0]!.length; turn++) {
    const to = from + sizes[turn % sizes.length]!
    yield planes.map((plane) => plane.slice(from, to))
    from = to
  }
}

async function collect(stream: AsyncIterable<LiveStems>) {
  const parts: LiveStems[] = []
  for await (const block of stream) {
    expect(block.start).toBe(parts.reduce((sum, { stems }) => sum + stems.vocals[0]!.length, 0))
    parts.push(block)
  }
  const planes = (stem: 'vocals' | 'accompaniments') =>
    (parts[0]?.stems.vocals ?? []).map((_, channel) => joined(parts.map(({ stems }) => stems[stem][channel]!)))
  return { parts, vocals: planes('vocals'), accompaniments: planes('accompaniments') }
}

/** Without deadlines: this machine may be busy. */
const separated = (source: LiveSource, options: Partial<StreamOptions> = {}) =>
  collect(separateStream(source, { sampleRate: rate, model: lowPass, whenLate: 'wait', ...options }))

function sumError(planes: Float32Array[], { vocals, accompaniments }: Awaited<ReturnType<typeof collect>>): number {
  expect(vocals).toHaveLength(planes.length)
  return Math.max(
    ...planes.map((plane, channel) => {
      const sum = vocals[channel]!.map((value, i) => value + accompaniments[channel]![i]!)
      return maxDifference(sum, plane)
    }),
  )
}

/** Longest step from one sample to the next, which a click exceeds. */
function steepest(samples: Float32Array): number {
  let steepestStep = 0
  for (let i = 1; i < samples.length; i++)
    steepestStep = Math.max(steepestStep, Math.abs(samples[i]! - samples[i - 1]!))
  return steepestStep
}

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

  test('are those of the network, without a seam from one run to the next', async () => {
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

  test('are the same for blocks of any size, also at another rate', async () => {
    const planes = [noise(120_000), noise(120_000, 2)]
    const options = { sampleRate: 48_000, latencyMs: 400 }
    const expected = await separated(blocks(planes, [120_000]), options)
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

  test('of a web stream come, too', async () => {
    const plane = noise(50_000)
    expect(sumError([plane], await separated(ReadableStream.from(blocks([plane]))))).toBeLessThan(1e-6)
  })

  test('of a stream without a sample are none, and one shorter than the latency comes out whole', async () => {
    expect((await separated(blocks([new Float32Array(0)]))).parts).toEqual([])
    expect(sumError([noise(100)], await separated(blocks([noise(100)])))).toBeLessThan(1e-6)
  })

  test('keep what is not a number to its sample', async () => {
    const plane = noise(2 * rate)
    plane[rate] = NaN
    plane[rate + 1] = Infinity
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

test('refuses a block unlike the first', async () => {
  async function* uneven() {
    yield [noise(5000)]
    yield [noise(10), noise(10)]
  }
  await expect(separated(uneven())).rejects.toThrow(/2 channels of 10 samples; expected 1/)
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

/** A worker in this thread, with an architecture that needs no network: half of everything is vocals. */
function halfWorker(sampleRate: number, latencyMs = 1000): LiveWorker {
  const architecture: Architecture = {
    sampleRate,
    geometry: { step: 10 * sampleRate, before: 0, length: 10 * sampleRate },
    stems: ['vocals'],
    needsTrackStatistics: false,
    prepare: () => [],
    collect: ({ planes }) => ({
      start: 0,
      stems: { vocals: planes.map((plane) => plane.map((value) => value / 2)) },
      sampleCount: planes[0]!.length,
      fadeIn: new Float32Array(0),
      fadeOut: new Float32Array(0),
      finishedBefore: planes[0]!.length,
    }),
    close: () => undefined,
  }
  const estimator = new LiveEstimator({
    architecture,
    networks: [],
    sampleRate,
    channelCount: 1,
    latencyMs,
    speed: coreSpeed.wasm,
  })
  return {
    timing: estimator.timing,
    push: (planes, passed) => estimator.push(planes, passed),
    end: (passed) => estimator.end(passed),
    close: async () => undefined,
  }
}

test('an hour takes no more memory than its first minute', async () => {
  // Without a network, whose 14,000 runs would take half an hour; what keeps samples is all real.
  const sampleRate = 8000
  const second = noise(sampleRate)
  async function* hour() {
    for (let index = 0; index < 3600; index++) yield [second]
  }
  let done = 0
  let early = 0
  let most = 0
  for await (const { stems } of separateLive(hour(), async () => halfWorker(sampleRate), {
    sampleRate,
    whenLate: 'wait',
  })) {
    done += stems.vocals[0]!.length
    const { arrayBuffers } = process.memoryUsage()
    if (done < 60 * sampleRate) early = Math.max(early, arrayBuffers)
    else most = Math.max(most, arrayBuffers)
  }
  expect(done).toBe(3600 * sampleRate)
  expect(most).toBeLessThan(early + 50e6)
})

describe('a machine that is too slow', () => {
  const sampleRate = 8000

  /** A second of work, and of patience, passes when the test says so. */
  function slowMachine() {
    const worker = halfWorker(sampleRate)
    let now = 0
    let takenMs = 0
    const clock: Clock = {
      now: () => now,
      // The work is done first, unless it takes longer than there is patience for.
      wait: async (milliseconds) => {
        if (milliseconds >= takenMs) return await new Promise(() => undefined)
        now += milliseconds
        takenMs -= milliseconds
      },
    }
    let release: (() => void)[] = []
    const slowly = async (work: Promise<AudioBlock[]>) => {
      const blocks = await work
      if (takenMs > 0) await new Promise<void>((resolve) => release.push(resolve))
      return blocks
    }
    const slow: LiveWorker = {
      ...worker,
      push: (planes, passed) => slowly(worker.push(planes, passed)),
      end: (passed) => slowly(worker.end(passed)),
    }
    return {
      worker: slow,
      clock,
      slowDown: () => void (takenMs = Infinity),
      recover() {
        takenMs = 0
        for (const resolve of release) resolve()
        release = []
      },
    }
  }

  test('passes the input on unchanged, counts it, and goes on separating once it can, without a click', async () => {
    const { worker, clock, slowDown, recover } = slowMachine()
    const plane = sine(30 * sampleRate, 100, sampleRate)
    async function* source() {
      for await (const block of blocks([plane], [800])) {
        if (block[0]!.length > 0) yield block
        sent++
        if (sent === 100) slowDown()
        if (sent === 200) recover()
      }
    }
    let sent = 0
    const { parts, vocals, accompaniments } = await collect(
      separateLive(source(), async () => worker, { sampleRate }, clock),
    )
    expect(sumError([plane], { parts, vocals, accompaniments })).toBeLessThan(1e-6)
    const late = parts.filter(({ isLate }) => isLate)
    const lateSamples = late.reduce((sum, { stems }) => sum + stems.vocals[0]!.length, 0)
    // It was slow for ten seconds.
    expect(lateSamples / sampleRate).toBeGreaterThan(8)
    expect(lateSamples / sampleRate).toBeLessThan(12)
    const silent = joined(late.map(({ stems }) => stems.vocals[0]!)).subarray(0.02 * sampleRate)
    expect(silent.every((value) => value === 0)).toBe(true)
    const half = (from: number, to: number) => vocals[0]!.subarray(from * sampleRate, to * sampleRate)
    expect(
      maxDifference(
        half(1, 8),
        plane.subarray(sampleRate, 8 * sampleRate).map((value) => value / 2),
      ),
    ).toBe(0)
    expect(
      maxDifference(
        half(22, 29),
        plane.subarray(22 * sampleRate, 29 * sampleRate).map((value) => value / 2),
      ),
    ).toBe(0)
    expect(steepest(vocals[0]!)).toBeLessThan((1.1 * steepest(plane)) / 2)
  })

  test('ends with the stream, too', async () => {
    const { worker, clock, slowDown } = slowMachine()
    slowDown()
    const plane = noise(5 * sampleRate)
    const { vocals, accompaniments } = await collect(
      separateLive(blocks([plane]), async () => worker, { sampleRate }, clock),
    )
    expect(accompaniments).toEqual([plane])
    expect(vocals[0]!.every((value) => value === 0)).toBe(true)
  })
})
