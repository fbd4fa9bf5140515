import type { LiveStems } from '../core/workflows/separation/live/live-mix.js'
import {
  type LiveAnswer,
  type LiveStream,
  type LiveWorker,
  workerIn,
} from '../core/workflows/separation/live/live-worker.js'
import type { LiveSource } from '../core/workflows/separation/live/pcm-source.js'
import { type LiveOptions, separateLive } from '../core/workflows/separation/live/separate-live.js'
import { addressesOf, type DeviceAssets, notLoaded, openWorker } from './assets.js'
import type { OpenRequest } from './live-worker.js'

export type { LiveStems } from '../core/workflows/separation/live/live-mix.js'
export type { LiveSource } from '../core/workflows/separation/live/pcm-source.js'

/** @experimental */
export interface LiveStreamOptions extends LiveOptions {
  /** Time from a sample's arrival to that of its stems, 250 to 4,000 ms; more is better. Default: 1,000. */
  latencyMs?: number
  assets?: DeviceAssets
}

/**
 * Like `separateStream` of `stemwork/live`, with the bundled model in a worker of this page.
 *
 * @throws StemworkError `INVALID_OPTIONS` for an invalid option, `BAD_INPUT` for a block unlike the first,
 * `MODEL_UNAVAILABLE` and `MISSING_DEPENDENCY` for files that the page cannot load; the signal's reason
 *
 * @experimental
 */
export function separateStream(source: LiveSource, options: LiveStreamOptions): AsyncGenerator<LiveStems, void, void> {
  const { sampleRate, latencyMs = 1000, assets = {} } = options
  return separateLive(
    source,
    (channelCount) => openLiveWorker({ sampleRate, channelCount, latencyMs }, assets),
    options,
  )
}

function openLiveWorker(stream: LiveStream, assets: DeviceAssets): Promise<LiveWorker> {
  // Bundlers look for exactly this expression.
  const open = () => new Worker(new URL('./live-worker.js', import.meta.url), { type: 'module' })
  const worker = openWorker(assets.liveWorker, open)
  worker.postMessage({ kind: 'open', ...stream, ...addressesOf(assets) } satisfies OpenRequest)
  return workerIn({
    post: (request, transfer) => worker.postMessage(request, transfer),
    listen(onAnswer, onLost) {
      worker.addEventListener('message', ({ data }: MessageEvent<LiveAnswer>) => onAnswer(data))
      worker.addEventListener('error', ({ message }) => onLost(notLoaded(new Error(message))))
    },
    end: async () => worker.terminate(),
  })
}
