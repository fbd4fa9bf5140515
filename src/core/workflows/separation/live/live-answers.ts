import { internalError, StemworkError } from '../../../engine/errors.js'
import type { LiveEstimator } from './live-estimator.js'
import type { LiveAnswer, LiveRequest } from './live-worker.js'

/** Answers requests in the thread that estimates, in Node.js and in browsers. */
export function liveAnswers(post: (answer: LiveAnswer, transfer: ArrayBuffer[]) => void) {
  let estimator: LiveEstimator | undefined
  const postOrFail = async (work: () => Promise<LiveAnswer>) => {
    try {
      const answer = await work()
      const blocks = answer.kind === 'vocals' ? answer.blocks : []
      // Blocks of one hop may be parts of the same memory.
      const memory = blocks.flatMap(({ channels }) => channels.map(({ buffer }) => buffer as ArrayBuffer))
      post(answer, [...new Set(memory)])
    } catch (error) {
      const { code, message, cause } = StemworkError.is(error) ? error : internalError(error)
      post({ kind: 'failed', code, message, cause: cause instanceof Error ? String(cause) : undefined }, [])
    }
  }
  return {
    /** Must be called before the first request. */
    open: (open: () => Promise<LiveEstimator>) =>
      postOrFail(async () => {
        estimator = await open()
        await estimator.warmUp()
        return { kind: 'ready', timing: estimator.timing }
      }),

    answer: (request: Exclude<LiveRequest, { kind: 'close' }>) =>
      postOrFail(async () => {
        if (!estimator) throw new Error('the estimator is not open')
        const { kind, passed } = request
        const blocks = kind === 'push' ? await estimator.push(request.planes, passed) : await estimator.end(passed)
        return { kind: 'vocals', blocks }
      }),
  }
}
