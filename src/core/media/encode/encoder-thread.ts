import { parentPort, workerData } from 'node:worker_threads'
import { StemworkError } from '../../engine/errors.js'
import { audioPieces } from './audio-pieces.js'
import { openEncoder } from './encoder.js'
import { yieldToOtherThreads } from './thread-priority.js'
import type { EncoderAnswer, EncoderRequest, EncoderThreadSettings } from './threaded-encoder.js'

// The thread's entry point: one encoder, driven by messages that are processed in order.

const { path, audio, ...options } = workerData as EncoderThreadSettings

function answer(message: EncoderAnswer): void {
  parentPort?.postMessage(message)
}

function fail(error: unknown): void {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
  answer({ kind: 'failed', error, code, isOwn: StemworkError.is(error) })
}

try {
  yieldToOtherThreads()
  const pieces = audioPieces(audio, options.channels)
  const encoder = await openEncoder(path, options)

  const take = async (request: EncoderRequest): Promise<void> => {
    switch (request.kind) {
      case 'write':
        await encoder.write(pieces[request.piece]!.map((plane) => plane.subarray(0, request.sampleCount)))
        return answer({ kind: 'written', piece: request.piece })
      case 'close':
        return answer({ kind: 'closed', written: await encoder.close() })
      default:
        return request satisfies never
    }
  }

  let last: Promise<void> = Promise.resolve()
  parentPort?.on('message', (request: EncoderRequest) => {
    last = last.then(() => take(request))
    last.catch(fail)
  })
  answer({ kind: 'ready' })
} catch (error) {
  fail(error)
}
