import { StemworkError } from '../../../engine/errors.js'
import type { AudioBlock } from '../../../media/dsp/audio-stream.js'
import type { LiveTiming } from './plan.js'

/** Facts about a stream for its worker. */
export interface LiveStream {
  sampleRate: number
  channelCount: number
  latencyMs: number
}

/** Estimates the vocals of one stream, in its own thread. One request at a time. */
export interface LiveWorker {
  readonly timing: LiveTiming
  /** As `LiveEstimator.push`. The planes may be detached afterwards. */
  push(planes: Float32Array<ArrayBuffer>[], passed: number): Promise<AudioBlock[]>
  /** As `LiveEstimator.end`. */
  end(passed: number): Promise<AudioBlock[]>
  /** Waits for a run in progress. */
  close(): Promise<void>
}

export type LiveRequest =
  | { kind: 'push'; planes: Float32Array<ArrayBuffer>[]; passed: number }
  | { kind: 'end'; passed: number }
  | { kind: 'close' }

export type LiveAnswer =
  | { kind: 'ready'; timing: LiveTiming }
  | { kind: 'vocals'; blocks: AudioBlock[] }
  | { kind: 'failed'; code: string; message: string; cause: string | undefined }

/** The caller's side of a thread in Node.js or in a browser. */
export interface LiveThread {
  post(request: LiveRequest, transfer: ArrayBuffer[]): void
  /** Calls `onAnswer` for every answer, and `onLost` when the thread is lost. */
  listen(onAnswer: (answer: LiveAnswer) => void, onLost: (error: unknown) => void): void
  /** Ends the thread, or waits until it ends after the last request. */
  end(): Promise<void>
}

/** @throws StemworkError with which the thread failed before it was ready */
export async function workerIn(thread: LiveThread): Promise<LiveWorker> {
  let settle: { resolve(answer: LiveAnswer): void; reject(error: unknown): void } | undefined
  let lost: Error | undefined
  const nextAnswer = () =>
    new Promise<LiveAnswer>((resolve, reject) => {
      settle = { resolve, reject }
    })
  const ready = nextAnswer()
  thread.listen(
    (answer) => (answer.kind === 'failed' ? settle?.reject(errorOf(answer)) : settle?.resolve(answer)),
    (error) => settle?.reject((lost ??= lostThread(error))),
  )
  const close = async () => {
    lost ??= new Error('the stream was closed')
    thread.post({ kind: 'close' }, [])
    await thread.end()
  }
  const ask = async (request: LiveRequest, transfer: ArrayBuffer[]): Promise<AudioBlock[]> => {
    if (lost !== undefined) throw lost
    thread.post(request, transfer)
    const answer = await nextAnswer()
    return answer.kind === 'vocals' ? answer.blocks : []
  }
  try {
    const answer = await ready
    if (answer.kind !== 'ready') throw lostThread(new Error(`it began with ${answer.kind}`))
    return {
      timing: answer.timing,
      push: (planes, passed) =>
        ask(
          { kind: 'push', planes, passed },
          planes.map(({ buffer }) => buffer),
        ),
      end: (passed) => ask({ kind: 'end', passed }, []),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function errorOf({ code, message, cause }: LiveAnswer & { kind: 'failed' }): StemworkError {
  return new StemworkError(code as StemworkError['code'], message, { cause })
}

function lostThread(cause: unknown): StemworkError {
  const message = 'The thread that separates the stream has ended. Start the stream again.'
  return new StemworkError('INTERNAL_ERROR', message, { retryable: true, cause })
}
