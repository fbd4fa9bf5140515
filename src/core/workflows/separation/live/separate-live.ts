import { untilAborted } from '../../../engine/workflow/until-aborted.js'
import type { AudioBlock } from '../../../media/dsp/audio-stream.js'
import { SampleWindow } from '../../../media/dsp/sample-window.js'
import { type Clock, liveDeadline } from './deadline.js'
import { liveMix, type LiveStems } from './live-mix.js'
import type { LiveWorker } from './live-worker.js'
import { type LiveSource, pcmPieces } from './pcm-source.js'

export interface LiveOptions {
  /** Of the stream, in Hz: 8,000 to 192,000. */
  sampleRate: number
  /**
   * Handling of late stems. `pass` (default): the input passes unchanged, all of it in the accompaniments. `wait`: the
   * stream waits, as a file can.
   */
  whenLate?: 'pass' | 'wait'
  signal?: AbortSignal
}

/** Opens the worker for a stream with this many channels. */
export type OpenLiveWorker = (channelCount: number) => Promise<LiveWorker>

/**
 * Separates a live stream. The source is read when the consumer requests stems, and at most the latency ahead of them.
 * When the generator ends, no run is in progress.
 *
 * @throws the signal's reason; errors of the source and of `open`
 */
export async function* separateLive(
  source: LiveSource,
  open: OpenLiveWorker,
  options: LiveOptions,
  clock?: Clock,
): AsyncGenerator<LiveStems, void, void> {
  const { sampleRate, signal } = options
  let stream: ReturnType<typeof liveSeparation> | undefined
  try {
    for await (const planes of pcmPieces(source, sampleRate, signal)) {
      stream ??= liveSeparation(await open(planes.length), planes.length, options, clock)
      yield* stream.push(planes)
    }
    if (stream) yield* stream.end()
  } finally {
    await stream?.close()
  }
}

/** Far above integers mistaken for floats. From 1e19 on, squares overflow, and estimates are NaN for seconds. */
const loudest = 1e10

interface Request {
  answer: Promise<AudioBlock[]>
  isEnd: boolean
}

/** One stream and its worker. */
function liveSeparation(worker: LiveWorker, channelCount: number, options: LiveOptions, clock?: Clock) {
  const { fadeSamples, slackMs, delaySamples } = worker.timing
  const mix = liveMix(channelCount, fadeSamples)
  const unsent = new SampleWindow(channelCount, fadeSamples)
  const deadline = options.whenLate === 'wait' ? undefined : liveDeadline(slackMs, clock)
  let request: Request | undefined

  const sent = (answer: Request['answer'], isEnd: boolean): Request => {
    // Awaited later, if at all; until then a rejection must not count as unhandled.
    answer.catch(() => undefined)
    return { answer, isEnd }
  }

  const sendPush = () => {
    const { start, end } = unsent
    const audible = (value: number) => (Math.abs(value) < loudest ? value : 0)
    const planes = unsent.views(start, end).map((plane) => plane.map(audible))
    unsent.dropBefore(end)
    return sent(worker.push(planes, mix.done), false)
  }

  /** Whether the worker has answered in time; then its estimates are in the mix. */
  const isAnswered = async ({ answer }: Request) => {
    if (!(await untilAborted(deadline?.isMet(answer) ?? answer.then(() => true), options.signal))) return false
    request = undefined
    mix.add(await answer)
    return true
  }

  return {
    close: () => worker.close(),

    /** Yields stems once some are known, or the input if they are late. */
    async *push(planes: Float32Array[]): AsyncGenerator<LiveStems, void, void> {
      mix.append(planes)
      unsent.append(planes)
      deadline?.advance((1000 * planes[0]!.length) / options.sampleRate)
      while (request ?? unsent.end > unsent.start) {
        request ??= sendPush()
        if (!(await isAnswered(request))) {
          const late = mix.passed(mix.end - delaySamples)
          return late && (yield late)
        }
        const block = mix.separated()
        if (block) yield block
      }
    },

    async *end(): AsyncGenerator<LiveStems, void, void> {
      let isEnded = false
      while (!isEnded) {
        request ??= unsent.end > unsent.start ? sendPush() : sent(worker.end(mix.done), true)
        const { isEnd } = request
        if (!(await isAnswered(request))) break
        isEnded = isEnd
      }
      const rest = isEnded ? mix.rest() : mix.passed(mix.end)
      if (rest) yield rest
    },
  }
}
