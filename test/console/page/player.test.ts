import { describe, expect, test, vi } from 'vitest'
import type { PcmSource } from '../../../src/console/sources/pcm-source.js'
import { Player, type PlayerContext, type PlayerOptions } from '../../../src/console/player/player.js'

const sampleRate = 1000

/** A started piece and its time: the value of a track's sample is its own frame number. */
interface Start {
  at: number
  frame: number
  frames: number
  node: { stopped: boolean; playbackRate: { value: number } }
}

/** An audio clock that the test moves, with a list of the starts on it. */
function fakeContext() {
  const starts: Start[] = []
  const gains: { gain: { value: number; setTargetAtTime(value: number): void } }[] = []
  const context = {
    currentTime: 5,
    outputLatency: 0,
    destination: {},
    resume: async () => undefined,
    suspend: async () => undefined,
    close: async () => undefined,
    createGain() {
      const gain = { value: 1, setTargetAtTime: (value: number) => void (gain.value = value) }
      gains.push({ gain })
      return { gain, connect: () => undefined }
    },
    createStereoPanner: () => ({ pan: { value: 0, setTargetAtTime: () => undefined }, connect: () => undefined }),
    createAnalyser: () => ({ fftSize: 0, getFloatTimeDomainData: (into: Float32Array) => into.fill(0.5) }),
    createBuffer(_channels: number, frames: number) {
      const plane = new Float32Array(frames)
      return { plane, copyToChannel: (from: Float32Array) => plane.set(from) }
    },
    createBufferSource() {
      const node = {
        stopped: false,
        playbackRate: { value: 1 },
        buffer: undefined as { plane: Float32Array } | undefined,
      }
      return Object.assign(node, {
        connect: () => undefined,
        disconnect: () => undefined,
        stop: () => void (node.stopped = true),
        start: (at: number) =>
          starts.push({ at, frame: node.buffer?.plane[0] ?? NaN, frames: node.buffer?.plane.length ?? 0, node }),
      })
    },
  }
  return { starts, gains, clock: context, context: context as unknown as PlayerContext }
}

function counting(seconds: number, delayMs = 0): PcmSource {
  return {
    sampleRate,
    frames: seconds * sampleRate,
    async read(from, frames) {
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
      return [Float32Array.from({ length: Math.min(frames, seconds * sampleRate - from) }, (_, n) => from + n)]
    },
  }
}

/** Offset of the frame numbers of a whole song. */
const ofSong = 100_000

function play(sources: PcmSource[], options: Pick<PlayerOptions, 'whole'> = {}) {
  const fake = fakeContext()
  const changes = vi.fn()
  const player = new Player(
    sources.map((source, index) => ({ name: `track ${index}`, source })),
    {
      onChange: changes,
      onError: (error) => expect.unreachable(String(error)),
      createContext: () => fake.context,
      ...options,
    },
  )
  return { ...fake, player, changes }
}

describe('the player', () => {
  test('starts the same frames of all tracks at the same instant, even if one arrives late', async () => {
    const { player, starts } = play([counting(5), counting(5, 30)])
    player.play()
    expect(player.isWaiting).toBe(true)
    await vi.waitFor(() => expect(starts).toHaveLength(6))
    for (let piece = 0; piece < 6; piece += 2) {
      const [one, other] = [starts[piece], starts[piece + 1]]
      expect([other!.at, other!.frame, other!.frames]).toEqual([one!.at, one!.frame, one!.frames])
    }
    player.close()
  })

  test('joins pieces without a gap', async () => {
    const { player, starts } = play([counting(7)])
    player.play()
    await vi.waitFor(() => expect(starts).toHaveLength(4))
    for (let piece = 1; piece < starts.length; piece++) {
      expect(starts[piece]!.at).toBeCloseTo(starts[piece - 1]!.at + starts[piece - 1]!.frames / sampleRate, 9)
      expect(starts[piece]!.frame).toBe(starts[piece - 1]!.frame + starts[piece - 1]!.frames)
    }
    player.close()
  })

  test('seeks to the exact frame, stops what was playing, and reports the position by the audio clock', async () => {
    const { player, starts, clock } = play([counting(30), counting(30)])
    player.play()
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(2))
    player.seek(17.25)
    expect(starts.every(({ node }) => node.stopped)).toBe(true)
    const before = starts.length
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(before + 2))
    expect(starts.slice(before, before + 2).map(({ frame }) => frame)).toEqual([17_250, 17_250])
    clock.currentTime = starts[before]!.at + 1.5
    expect(player.position).toBeCloseTo(18.75, 6)
    player.pause()
    clock.currentTime += 10
    expect([player.isPlaying, player.position]).toEqual([false, expect.closeTo(18.75, 6)])
    player.close()
  })

  test('the position is what is heard, behind the clock; a loop continues where the device is', async () => {
    const { player, starts, clock } = play([counting(30)])
    player.play()
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(2))
    clock.outputLatency = 0.25
    clock.currentTime = starts[0]!.at + 0.1
    expect(player.position, 'nothing is heard yet').toBe(0)
    clock.currentTime = starts[0]!.at + 2
    expect(player.position).toBeCloseTo(1.75, 6)
    const before = starts.length
    player.setLoop({ from: 1, to: 20 })
    await vi.waitFor(() => expect(starts.length).toBeGreaterThan(before))
    expect(starts[before]!.frame).toBe(2000)
    player.close()
  })

  test('continues in sync after the network was too slow', async () => {
    let arrive = () => {}
    const arrived = new Promise<void>((resolve) => (arrive = resolve))
    const whole = counting(8)
    const slow: PcmSource = {
      ...whole,
      read: (from, ...rest) => (from > 0 ? arrived.then(() => whole.read(from, ...rest)) : whole.read(from, ...rest)),
    }
    const { player, starts, clock } = play([counting(8), slow])
    player.play()
    await vi.waitFor(() => expect(starts).toHaveLength(2))
    clock.currentTime += 60
    arrive()
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(4))
    expect(starts[2]!.at).toBeGreaterThan(clock.currentTime)
    expect([starts[3]!.at, starts[3]!.frame]).toEqual([starts[2]!.at, starts[2]!.frame])
    expect(player.position).toBeCloseTo(starts[2]!.frame / sampleRate, 6)
    player.close()
  })

  test('schedules only a few seconds ahead, and returns to the start after the end', async () => {
    const { player, starts, clock } = play([counting(60)])
    player.play()
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(4))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(starts.length).toBe(4)
    player.seek(59)
    await vi.waitFor(() => expect(starts.length).toBe(5))
    clock.currentTime += 2
    await vi.waitFor(() => expect(player.isPlaying).toBe(false))
    expect(player.position).toBe(0)
    player.close()
  })

  test('sets volumes before and while it plays', async () => {
    const { player, starts, gains } = play([counting(5), counting(5)])
    player.setVolume('track 1', 0.25)
    player.play()
    await vi.waitFor(() => expect(starts.length).toBeGreaterThan(0))
    // The first gain is that of all tracks.
    expect(gains.map(({ gain }) => gain.value)).toEqual([1, 1, 0.25])
    player.setVolume('track 0', 0)
    player.setMasterVolume(0.5)
    expect(gains.map(({ gain }) => gain.value)).toEqual([0.5, 0, 0.25])
    player.close()
  })

  test('repeats a loop sample for sample, and reports the position within it', async () => {
    const { player, starts, clock } = play([counting(20), counting(20)])
    player.setLoop({ from: 3.5, to: 5.25 })
    player.play()
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(12))
    const first = starts.filter((_, index) => index % 2 === 0)
    // Pieces begin at even seconds: 3.5 to 4, 4 to 5.25, then again.
    expect(first.slice(0, 4).map(({ frame, frames }) => [frame, frames])).toEqual([
      [3500, 500],
      [4000, 1250],
      [3500, 500],
      [4000, 1250],
    ])
    for (const [index, start] of first.slice(1).entries())
      expect(start.at).toBeCloseTo(first[index]!.at + first[index]!.frames / sampleRate, 9)
    clock.currentTime = first[2]!.at + 0.25
    expect(player.position).toBeCloseTo(3.75, 6)
    player.setLoop(undefined)
    await vi.waitFor(() => expect(starts.at(-1)!.frame).toBeGreaterThan(5250))
    player.close()
  })

  test('waits at the end of growing tracks, and continues when there is more', async () => {
    let frames = 2 * sampleRate
    const growing: PcmSource = {
      ...counting(60),
      isGrowing: true,
      get frames() {
        return frames
      },
    }
    const { player, starts, clock } = play([growing])
    expect(player.duration).toBe(2)
    player.play()
    await vi.waitFor(() => expect(starts).toHaveLength(1))
    clock.currentTime = starts[0]!.at + 5
    expect([player.isPlaying, player.position]).toEqual([true, 2])
    frames = 4 * sampleRate
    await vi.waitFor(() => expect(starts).toHaveLength(2))
    expect([player.duration, starts[1]!.frame]).toEqual([4, 2000])
    expect(starts[1]!.at).toBeGreaterThan(clock.currentTime)
    player.close()
  })

  test('knows the full length of growing tracks, and does not seek beyond what exists', async () => {
    const growing: PcmSource = { ...counting(2), isGrowing: true, promisedFrames: 60 * sampleRate }
    const { player, starts, clock } = play([growing])
    expect([player.duration, player.made]).toEqual([60, 2])
    player.seek(30)
    expect(player.position).toBe(2)
    player.setLoop({ from: 1, to: 50 })
    expect(player.loop).toEqual({ from: 1, to: 2 })
    player.setLoop({ from: 20, to: 30 })
    expect(player.loop).toBeUndefined()
    player.seek(1)
    player.play()
    await vi.waitFor(() => expect(starts).toHaveLength(1))
    clock.currentTime = starts[0]!.at + 20
    expect([player.isPlaying, player.position]).toEqual([true, 2])
    player.close()
  })

  test('plays the song where its tracks do not exist yet, and continues with them without a gap', async () => {
    let frames = 0
    const growing: PcmSource = {
      ...counting(60),
      isGrowing: true,
      get frames() {
        return frames
      },
    }
    const song: PcmSource = {
      ...counting(60),
      read: async (from, count) => [new Float32Array(count).fill(from + ofSong)],
    }
    const { player, starts, clock } = play([growing, growing], { whole: song })
    expect([player.duration, player.made, player.playable]).toEqual([60, 0, 60])
    player.seek(30)
    expect(player.position).toBe(30)
    player.seek(0)
    player.play()
    await vi.waitFor(() => expect(starts).toHaveLength(2))
    expect(starts.map(({ frame }) => frame)).toEqual([ofSong, ofSong + 2000])
    frames = 12 * sampleRate
    clock.currentTime += 2.5
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(6))
    // Pieces of both tracks start together where the song stopped.
    expect(starts.slice(2, 6).map(({ frame }) => frame)).toEqual([4000, 4000, 6000, 6000])
    for (const [index, start] of starts.slice(1).entries())
      if (start.at !== starts[index]!.at) expect(start.at).toBeCloseTo(starts[index]!.at + 2, 9)
    player.close()
  })

  test('continues without a gap when finished tracks replace the growing ones', async () => {
    const { player, starts, clock } = play([{ ...counting(8), isGrowing: true, promisedFrames: 20 * sampleRate }])
    player.play()
    await vi.waitFor(() => expect(starts).toHaveLength(4))
    player.replace([{ name: 'track 0', source: counting(20) }])
    clock.currentTime += 7
    await vi.waitFor(() => expect(starts.length).toBeGreaterThanOrEqual(6))
    expect(starts.map(({ frame }) => frame).slice(0, 6)).toEqual([0, 2000, 4000, 6000, 8000, 10_000])
    expect(starts.some(({ node }) => node.stopped)).toBe(false)
    for (const [index, start] of starts.slice(1).entries()) expect(start.at).toBeCloseTo(starts[index]!.at + 2, 9)
    player.close()
  })

  test('measures the level of a track only while it plays', async () => {
    const { player, starts } = play([counting(5)])
    expect(player.level('track 0')).toBe(0)
    player.play()
    await vi.waitFor(() => expect(starts.length).toBeGreaterThan(0))
    expect(player.level('track 0')).toBe(0.5)
    player.close()
  })
})
