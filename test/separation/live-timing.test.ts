import { describe, expect, test } from 'vitest'
import type { AudioBlock } from '../../src/core/media/dsp/audio-stream.js'
import type { Architecture } from '../../src/core/workflows/separation/architectures/architecture.js'
import { coreSpeed } from '../../src/core/workflows/separation/live/core-speed.js'
import type { Clock } from '../../src/core/workflows/separation/live/deadline.js'
import { LiveEstimator } from '../../src/core/workflows/separation/live/live-estimator.js'
import type { LiveWorker } from '../../src/core/workflows/separation/live/live-worker.js'
import { separateLive } from '../../src/core/workflows/separation/live/separate-live.js'
import { blocks, collect, steepest, sumError } from './live-streams.js'
import { joined, maxDifference, noise, sine } from './tracks.js'

/** A worker in this thread, with an architecture without a network: half of everything is vocals. */
function halfWorker(sampleRate: number, latencyMs = 1000): LiveWorker {
  const architecture: Architecture = {
    sampleRate,
    geometry: { step: 10 * sampleRate, before: 0, length: 10 * sampleRate },
    stems: ['vocals'],
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
  // Without a network, whose 14,000 runs would take half an hour; everything that keeps samples is real.
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

  /** A machine on which time, of work and of waiting, passes only when the test says so. */
  function slowMachine() {
    const worker = halfWorker(sampleRate)
    let now = 0
    let takenMs = 0
    const clock: Clock = {
      now: () => now,
      // The work ends first, unless it takes longer than the wait.
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
      /** A minute without any request for samples. */
      pause: () => void (now += 60_000),
      recover() {
        takenMs = 0
        for (const resolve of release) resolve()
        release = []
      },
    }
  }

  test('passes the input on unchanged, counts it, and continues separating once it can, without a click', async () => {
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
    // The machine was slow for ten seconds.
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

  test('is not confused with a pause of the source or of the consumer', async () => {
    const { worker, clock, pause } = slowMachine()
    const plane = noise(20 * sampleRate)
    let read = 0
    async function* source() {
      for await (const block of blocks([plane], [800])) {
        if (++read === 50) pause()
        yield block
      }
    }
    let isPaused = false
    let done = 0
    for await (const { stems, isLate } of separateLive(source(), async () => worker, { sampleRate }, clock)) {
      expect(isLate).toBe(false)
      done += stems.vocals[0]!.length
      if (isPaused || done < 10 * sampleRate) continue
      isPaused = true
      const before = read
      pause()
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(read).toBe(before)
    }
    expect(done).toBe(plane.length)
  })

  test('stops at the end of the stream', async () => {
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
