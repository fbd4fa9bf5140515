import { internalError, StemworkError } from '../core/engine/errors.js'
import type { FromWorker, ToWorker } from './messages.js'
import { separateOnDevice } from './on-device.js'

// The worker's entry point: one separation.

const controller = new AbortController()

function post(message: FromWorker): void {
  ;(globalThis as unknown as { postMessage(message: FromWorker): void }).postMessage(message)
}

globalThis.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'cancel') return controller.abort()
  const { signal } = controller
  separateOnDevice(data.request, { signal, onProgress: (progress) => post({ kind: 'progress', progress }) }).then(
    (separated) => post({ kind: 'done', separated }),
    (error: unknown) => post(signal.aborted ? { kind: 'canceled' } : failure(error)),
  )
})

function failure(error: unknown): FromWorker {
  const { code, reason, message, cause } = StemworkError.is(error) ? error : internalError(error)
  return { kind: 'failed', code, reason, message, cause: cause instanceof Error ? String(cause) : undefined }
}
