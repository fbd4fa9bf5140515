import { parentPort, workerData } from 'node:worker_threads'
import type { Model } from '../../../models/manifest.js'
import type { Network } from '../../../models/session/network.js'
import type { Runtime, RuntimeChoice } from '../../../models/session/runtime.js'
import { openSession } from '../../../models/session/session.js'
import { createArchitecture } from '../architectures/create-architecture.js'
import { liveAnswers } from './live-answers.js'
import { LiveEstimator } from './live-estimator.js'
import type { LiveRequest, LiveStream } from './live-worker.js'
import { coreSpeed } from './core-speed.js'

export interface LiveThreadSettings {
  model: Pick<Model, 'manifest' | 'paths'>
  stream: LiveStream
  runtime: RuntimeChoice | undefined
}

// The thread's entry point, with its own session, which blocks only this thread.

const answers = liveAnswers((answer, transfer) => parentPort?.postMessage(answer, transfer))

parentPort?.on('message', (request: LiveRequest) => {
  if (request.kind !== 'close') return void answers.answer(request)
  // Only ends this thread, and not during a run.
  process.exit()
})

await answers.open(async () => {
  const { model, stream, runtime } = workerData as LiveThreadSettings
  const networks: Network[] = []
  for (const path of model.paths) networks.push(await openSession(path, { threads: 1, runtime }))
  const architecture = await createArchitecture(model.manifest, networks, { stems: ['vocals'] })
  const used: Runtime = networks[0]?.runtime ?? 'wasm'
  return new LiveEstimator({ architecture, networks, ...stream, speed: coreSpeed[used] })
})
