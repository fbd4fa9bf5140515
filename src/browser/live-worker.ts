import { coreSpeed } from '../core/workflows/separation/live/core-speed.js'
import { liveAnswers } from '../core/workflows/separation/live/live-answers.js'
import { LiveEstimator } from '../core/workflows/separation/live/live-estimator.js'
import type { LiveRequest, LiveStream } from '../core/workflows/separation/live/live-worker.js'
import type { NetworkAddresses } from './assets.js'
import { loadNetwork } from './load-network.js'

/** The first message. */
export interface OpenRequest extends LiveStream, NetworkAddresses {
  kind: 'open'
}

// The worker's entry point: one stream. Network runs block only this thread.

interface WorkerScope {
  postMessage(message: unknown, transfer: Transferable[]): void
  close(): void
}
const scope = globalThis as unknown as WorkerScope
const answers = liveAnswers((answer, transfer) => scope.postMessage(answer, transfer))

globalThis.addEventListener('message', ({ data }: MessageEvent<LiveRequest | OpenRequest>) => {
  if (data.kind === 'close') return scope.close()
  if (data.kind !== 'open') return void answers.answer(data)
  void answers.open(async () => {
    const { network, architecture } = await loadNetwork(data)
    return new LiveEstimator({ ...data, architecture, networks: [network], speed: coreSpeed.wasm })
  })
})
