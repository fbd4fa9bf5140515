import { untilAborted } from '../../../engine/workflow/until-aborted.js'
import type { AudioBlock } from '../../../media/dsp/audio-stream.js'
import { SampleWindow } from '../../../media/dsp/sample-window.js'
import { type Clock, liveDeadline } from './deadline.js'
import { LiveMix, type LiveStems } from './live-mix.js'
import type { LiveWorker } from './live-worker.js'
import { type LiveSource, pcmPieces } from './pcm-source.js'

export interface LiveOptions {
  /** Of the stream, in Hz: 8,000 to 192,000. */
  sampleRate: number
  /**
   * What to do when stems are not there in time. `pass` (default): the input passes unchanged, all of it in the
   * accompaniments. `wait`: the stream waits, as a file can.
   */
  whenLate?: 'pass' | 'wait'
  signal?: AbortSignal
}

/** Opens the worker for a stream with this many channels. */
export type OpenLiveWorker = (channelCount: number) => Promise<LiveWorker>

/**
 * Separates a stream while it comes. The source is read when the consumer asks for stems, and no further ahead of these
 * than the latency. When the generator ends, no run is in progress.
 *
 * @throws the signal's reason; what the source and `open` throw
 */
export async function* separateLive(
  source: LiveSource,
  open: OpenLiveWorker,
  options: LiveOptions,
  clock?: Clock,
): AsyncGenerator<LiveStems, void, void> {
  const { sampleRate, signal } = options
  let stream: LiveSeparation | undefined
  try {
    for await (const planes of pcmPieces(source, sampleRate, signal)) {
      stream ??= new LiveSeparation(await open(planes.length), planes.length, options, clock)
      yield* stream.push(planes)
    }
    if (stream) yield* stream.end()
  } finally {
    await stream?.close()
  }
}

/** Far above integers taken for floats. From 1e19 on, squares are no numbers, and an estimate is none for seconds. */
const loudest = 1e10

interface Request {
  answer: Promise<AudioBlock[]>
  isEnd: boolean
}

/** One stream and its worker. */
class LiveSeparation {
  readonly #worker: LiveWorker
  readonly #options: LiveOptions
  readonly #mix: LiveMix
  readonly #deadline: ReturnType<typeof liveDeadline> | undefined
  readonly #unsent: SampleWindow
  #request: Request | undefined

  constructor(worker: LiveWorker, channelCount: number, options: LiveOptions, clock?: Clock) {
    const { fadeSamples, slackMs } = worker.timing
    this.#worker = worker
    this.#options = options
    this.#mix = new LiveMix(channelCount, fadeSamples)
    this.#unsent = new SampleWindow(channelCount, fadeSamples)
    this.#deadline = options.whenLate === 'wait' ? undefined : liveDeadline(slackMs, clock)
  }

  /** Stems, once some are known; the input instead if these are late. */
  async *push(planes: Float32Array[]): AsyncGenerator<LiveStems, void, void> {
    this.#mix.append(planes)
    this.#unsent.append(planes)
    this.#deadline?.advance((1000 * planes[0]!.length) / this.#options.sampleRate)
    while (this.#request ?? this.#unsent.end > this.#unsent.start) {
      this.#request ??= this.#sendPush()
      if (!(await this.#isAnswered(this.#request))) {
        const late = this.#mix.passed(this.#mix.end - this.#worker.timing.delaySamples)
        return late && (yield late)
      }
      const block = this.#mix.separated()
      if (block) yield block
    }
  }

  async *end(): AsyncGenerator<LiveStems, void, void> {
    let isEnded = false
    while (!isEnded) {
      this.#request ??= this.#unsent.end > this.#unsent.start ? this.#sendPush() : this.#sendEnd()
      const { isEnd } = this.#request
      if (!(await this.#isAnswered(this.#request))) break
      isEnded = isEnd
    }
    const rest = isEnded ? this.#mix.rest() : this.#mix.passed(this.#mix.end)
    if (rest) yield rest
  }

  async close(): Promise<void> {
    await this.#worker.close()
  }

  #sendPush(): Request {
    const { start, end } = this.#unsent
    const audible = (value: number) => (Math.abs(value) < loudest ? value : 0)
    const planes = this.#unsent.views(start, end).map((plane) => plane.map(audible))
    this.#unsent.dropBefore(end)
    return this.#sent(this.#worker.push(planes, this.#mix.done), false)
  }

  #sendEnd(): Request {
    return this.#sent(this.#worker.end(this.#mix.done), true)
  }

  #sent(answer: Request['answer'], isEnd: boolean): Request {
    // Awaited later, if at all; until then a rejection must not count as unhandled.
    answer.catch(() => undefined)
    return { answer, isEnd }
  }

  /** Whether the worker has answered in time; then its estimates are in the mix. */
  async #isAnswered({ answer }: Request): Promise<boolean> {
    const isMet = untilAborted(this.#deadline?.isMet(answer) ?? answer.then(() => true), this.#options.signal)
    if (!(await isMet)) return false
    this.#request = undefined
    this.#mix.add(await answer)
    return true
  }
}
