import { internalError, StemworkError } from '../../../engine/errors.js'
import type { LiveEstimator } from './live-estimator.js'
import type { LiveAnswer, LiveRequest } from './live-worker.js'

/** The side of the thread that estimates: how it answers, in Node.js and in browsers. */
export class LiveAnswers {
  readonly #post: (answer: LiveAnswer, transfer: ArrayBuffer[]) => void
  #estimator: LiveEstimator | undefined

  constructor(post: (answer: LiveAnswer, transfer: ArrayBuffer[]) => void) {
    this.#post = post
  }

  /** To be called before the first request. */
  async open(open: () => Promise<LiveEstimator>): Promise<void> {
    await this.#orFailed(async () => {
      const estimator = (this.#estimator = await open())
      await estimator.warmUp()
      return { kind: 'ready', timing: estimator.timing }
    })
  }

  async answer(request: Exclude<LiveRequest, { kind: 'close' }>): Promise<void> {
    await this.#orFailed(async () => {
      const estimator = this.#estimator
      if (!estimator) throw new Error('the estimator is not open')
      const { kind, passed } = request
      const blocks = kind === 'push' ? await estimator.push(request.planes, passed) : await estimator.end(passed)
      return { kind: 'vocals', blocks }
    })
  }

  async #orFailed(work: () => Promise<LiveAnswer>): Promise<void> {
    try {
      const answer = await work()
      const blocks = answer.kind === 'vocals' ? answer.blocks : []
      // Blocks of one hop may be parts of the same memory.
      const memory = blocks.flatMap(({ channels }) => channels.map(({ buffer }) => buffer as ArrayBuffer))
      this.#post(answer, [...new Set(memory)])
    } catch (error) {
      const { code, message, cause } = StemworkError.is(error) ? error : internalError(error)
      this.#post({ kind: 'failed', code, message, cause: cause instanceof Error ? String(cause) : undefined }, [])
    }
  }
}
