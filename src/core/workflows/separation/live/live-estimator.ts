import type { AudioBlock } from '../../../media/dsp/audio-stream.js'
import { Resampler } from '../../../media/dsp/resample.js'
import { SampleWindow } from '../../../media/dsp/sample-window.js'
import type { Network } from '../../../models/session/network.js'
import type { Architecture } from '../architectures/architecture.js'
import { trackStatistics } from '../pipeline/track-statistics.js'
import { type ChannelGroup, channelGroups } from './channel-groups.js'
import { type LivePlan, livePlan, type LiveTiming, liveTiming } from './plan.js'

export interface LiveEstimatorOptions {
  architecture: Architecture
  /** The networks that the architecture was made for. */
  networks: readonly Network[]
  /** Of the stream. */
  sampleRate: number
  channelCount: number
  latencyMs: number
  /** Seconds of audio that one core separates in a second. */
  speed: number
}

/**
 * Estimates the vocals of a live stream: for every hop it runs the network on the last seconds, as if they were a whole
 * track, and takes the samples of the hop, which precede the look-ahead. The size of blocks makes no difference to the
 * result, and memory does not grow.
 */
export class LiveEstimator {
  readonly plan: LivePlan
  readonly timing: LiveTiming
  readonly #options: LiveEstimatorOptions
  readonly #groups: ChannelGroup[]
  readonly #forward: Resampler | undefined
  readonly #back: Resampler | undefined
  readonly #window: SampleWindow
  readonly #rising: Float32Array
  /** The next sample to be estimated. */
  #done = 0
  /** The last run's estimate of the first samples after its hop. */
  #tail: Float32Array[] | undefined

  constructor(options: LiveEstimatorOptions) {
    const { architecture, sampleRate, channelCount, latencyMs, speed } = options
    const { step, given = 0 } = architecture.geometry
    this.#options = options
    this.#groups = channelGroups(channelCount)
    this.plan = livePlan({
      latencyMs,
      sampleRate: architecture.sampleRate,
      inputRate: sampleRate,
      runs: this.#groups.length,
      // A track of this length is one segment.
      longest: step + given,
      speed,
    })
    this.timing = liveTiming(this.plan, { sampleRate: architecture.sampleRate, inputRate: sampleRate })
    if (sampleRate !== architecture.sampleRate) {
      this.#forward = new Resampler(sampleRate, architecture.sampleRate, channelCount)
      this.#back = new Resampler(architecture.sampleRate, sampleRate, channelCount)
    }
    this.#window = new SampleWindow(channelCount, this.plan.context + 2 * this.plan.hop)
    const { fade } = this.plan
    this.#rising = Float32Array.from({ length: fade }, (_, i) => (i + 0.5) / fade)
  }

  /** Runs the network once, because the first run takes longer than the others. */
  async warmUp(): Promise<void> {
    await this.#vocalsOf([0, 1].map(() => new Float32Array(this.plan.context)))
  }

  /**
   * Takes the next samples, and returns the vocals that follow the last ones returned; none while they are not known.
   *
   * @param passed samples of the stream that no longer need an estimate
   */
  async push(planes: Float32Array[], passed = 0): Promise<AudioBlock[]> {
    const { hop, lookAhead } = this.plan
    for (const { channels } of this.#forward?.push(planes) ?? [{ channels: planes }]) this.#window.append(channels)
    const found: AudioBlock[] = []
    while (this.#window.end >= this.#done + hop + lookAhead) {
      const vocals = await this.#estimate(this.#done + hop, this.#done + hop + lookAhead, this.#networkSamples(passed))
      found.push(...this.#returned(vocals))
    }
    return found
  }

  /** Returns the remaining vocals, up to a few samples after the end of the stream. */
  async end(passed = 0): Promise<AudioBlock[]> {
    for (const { channels } of this.#forward?.end() ?? []) this.#window.append(channels)
    const { end } = this.#window
    const found: AudioBlock[] = []
    if (end > this.#done) found.push(...this.#returned(await this.#estimate(end, end, this.#networkSamples(passed))))
    found.push(...(this.#back?.end() ?? []))
    return found
  }

  #networkSamples(samples: number): number {
    return Math.floor((samples * this.#options.architecture.sampleRate) / this.#options.sampleRate)
  }

  #returned(vocals: Float32Array[]): Iterable<AudioBlock> {
    return this.#back?.push(vocals) ?? [{ channels: vocals }]
  }

  /** The vocals from `#done` to `to`, by a run on the samples before `end`. */
  async #estimate(to: number, end: number, passed: number): Promise<Float32Array[]> {
    const { fade, context, hop } = this.plan
    const from = this.#done
    const isNeeded = to > passed
    const longer = Math.min(end - to, fade)
    const found = isNeeded ? await this.#run(from, to + longer, end) : this.#silence(to + longer - from)
    const tail = this.#tail
    if (tail) for (const [channel, samples] of found.entries()) fadeOver(samples, tail[channel]!, this.#rising)
    this.#tail = isNeeded ? found.map((samples) => samples.slice(to - from)) : undefined
    this.#done = to
    this.#window.dropBefore(end + hop - context)
    return found.map((samples) => samples.subarray(0, to - from))
  }

  /** The vocals from `from` to `to`, by channel. */
  async #run(from: number, to: number, end: number): Promise<Float32Array[]> {
    const start = Math.max(this.#window.start, end - this.plan.context)
    const chunk = this.#window.views(start, end)
    const found = this.#silence(to - from)
    for (const [left, right] of this.#groups) {
      const planes = [chunk[left]!.slice(), chunk[right]!.slice()]
      if (planes.every((plane) => plane.every((value) => value === 0))) continue
      const vocals = await this.#vocalsOf(planes)
      const [first, second] = vocals.map((plane) => plane.subarray(from - start, to - start))
      if (left === right) for (let i = 0; i < to - from; i++) found[left]![i] = (first![i]! + second![i]!) / 2
      else {
        found[left]!.set(first!)
        found[right]!.set(second!)
      }
    }
    return found
  }

  /** The vocals of a chunk. Valid until the next one. */
  async #vocalsOf(planes: Float32Array<ArrayBuffer>[]): Promise<Float32Array[]> {
    const { architecture, networks } = this.#options
    const segment = { index: 0, start: 0, planes, trackSamples: planes[0]!.length }
    const statistics = architecture.needsTrackStatistics
      ? await trackStatistics({ blocks: one({ channels: planes }) })
      : undefined
    const runs = architecture.prepare(segment, statistics)
    const results = await Promise.all(runs.map(({ network, feeds, fetches }) => networks[network]!.run(feeds, fetches)))
    const done = results.map(({ feeds, fetches }, index) => ({ network: runs[index]!.network, feeds, fetches }))
    const { vocals, accompaniments } = architecture.collect(segment, done, statistics).stems
    if (vocals) return vocals
    return planes.map((plane, channel) => plane.map((value, i) => value - accompaniments![channel]![i]!))
  }

  #silence(length: number): Float32Array<ArrayBuffer>[] {
    return Array.from({ length: this.#options.channelCount }, () => new Float32Array(length))
  }
}

/** Fades from the last run's estimate to the estimate of this one. */
function fadeOver(samples: Float32Array, tail: Float32Array, rising: Float32Array): void {
  const length = Math.min(tail.length, samples.length)
  for (let i = 0; i < length; i++) samples[i] = tail[i]! + rising[i]! * (samples[i]! - tail[i]!)
}

async function* one(block: AudioBlock): AsyncGenerator<AudioBlock> {
  yield block
}
