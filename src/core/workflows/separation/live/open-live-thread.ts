import { scriptFile } from '../../../engine/package-files.js'
import { startRuntimeWorker } from '../../../models/session/runtime-worker.js'
import type { LiveThreadSettings } from './live-thread.js'
import { type LiveAnswer, type LiveRequest, type LiveWorker, workerIn } from './live-worker.js'

const entry = scriptFile('core/workflows/separation/live/live-thread.js')

/**
 * Opens a worker in a thread of this process. While it waits for a request, it does not keep the process alive.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` and `INVALID_OPTIONS` as `separate` does
 */
export function openLiveThread(settings: LiveThreadSettings): Promise<LiveWorker> {
  const thread = startRuntimeWorker(entry, settings)
  const exit = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
  let isEnding = false
  return workerIn({
    post(request: LiveRequest, transfer) {
      thread.ref()
      thread.postMessage(request, transfer)
    },
    listen(onAnswer, onLost) {
      thread.on('message', (answer: LiveAnswer) => {
        if (!isEnding) thread.unref()
        onAnswer(answer)
      })
      thread.on('error', onLost)
      thread.on('exit', (code) => onLost(new Error(`it ended with code ${code}`)))
    },
    end() {
      isEnding = true
      return exit
    },
  })
}
