import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { type ErrorCode, StemworkError } from '../../engine/errors.js'
import { scriptFile } from '../../engine/package-files.js'
import type { AudioEncoder, WrittenAudio } from './audio-encoder.js'
import type { EncoderOptions } from './encoder.js'
import { audioPieceBytes, audioPieces, pieceSamples } from './audio-pieces.js'

export interface EncoderThreadSettings extends EncoderOptions {
  path: string
  audio: SharedArrayBuffer
}

export type EncoderRequest = { kind: 'write'; piece: number; sampleCount: number } | { kind: 'close' }

export type EncoderAnswer =
  | { kind: 'ready' }
  /** The piece may be filled again. */
  | { kind: 'written'; piece: number }
  | { kind: 'closed'; written: WrittenAudio }
  /** The code is that of a `StemworkError` if `isOwn`, else the system's. */
  | { kind: 'failed'; error: unknown; code: string | undefined; isOwn: boolean }

/** Pieces that the thread may lag behind before `write` waits for it: six seconds of audio. */
const maxPieces = 4

const entry = scriptFile('core/media/encode/encoder-thread.js')

/**
 * Creates or replaces the file, like `openEncoder`, but encodes and writes in its own thread. The audio is passed in
 * shared memory of a fixed size. An abandoned encoder stops at once.
 *
 * @throws as `openEncoder`; later failures of the thread are thrown by the next `write` or by `close`
 */
export async function openThreadedEncoder(path: string, options: EncoderOptions): Promise<AudioEncoder> {
  const audio = new SharedArrayBuffer(maxPieces * audioPieceBytes(options.channels))
  const pieces = audioPieces(audio, options.channels)
  const workerData: EncoderThreadSettings = { ...options, path, audio }
  const worker = new Worker(fileURLToPath(entry), { workerData })
  const free = [...pieces.keys()]
  let isReady = false
  let written: WrittenAudio | undefined
  let failure: { error: unknown } | undefined
  let wake = () => {}

  const fail = (error: unknown) => {
    failure ??= { error }
    wake()
  }
  worker.on('message', (answer: EncoderAnswer) => {
    switch (answer.kind) {
      case 'ready':
        isReady = true
        return wake()
      case 'written':
        free.push(answer.piece)
        return wake()
      case 'closed':
        written = answer.written
        return wake()
      case 'failed':
        return fail(errorOf(answer))
      default:
        return answer satisfies never
    }
  })
  worker.on('error', fail)
  worker.on('exit', (code) => fail(new Error(`the thread of an encoder ended with code ${code}`)))

  /** Waits for the thread until `done` returns a value. @throws the thread's failure */
  async function until<Value>(done: () => Value | undefined): Promise<Value> {
    for (;;) {
      const value = done()
      if (value !== undefined) return value
      if (failure) throw failure.error
      await new Promise<void>((resolve) => (wake = resolve))
    }
  }

  try {
    await until(() => isReady || undefined)
  } catch (error) {
    await worker.terminate()
    throw error
  }
  return {
    async write(planes) {
      for (let start = 0; start < planes[0]!.length; start += pieceSamples) {
        const piece = await until(() => free.shift())
        const sampleCount = Math.min(pieceSamples, planes[0]!.length - start)
        for (const [channel, plane] of planes.entries())
          pieces[piece]![channel]!.set(plane.subarray(start, start + sampleCount))
        worker.postMessage({ kind: 'write', piece, sampleCount } satisfies EncoderRequest)
      }
    },
    async close() {
      worker.postMessage({ kind: 'close' } satisfies EncoderRequest)
      try {
        return await until(() => written)
      } finally {
        await worker.terminate()
      }
    },
    async abandon() {
      fail(new Error('the encoder was abandoned'))
      await worker.terminate()
    },
  }
}

function errorOf({ error, code, isOwn }: EncoderAnswer & { kind: 'failed' }): unknown {
  if (!(error instanceof Error)) return error
  if (isOwn) return new StemworkError(code as ErrorCode, error.message, { cause: error.cause })
  return Object.assign(error, code === undefined ? {} : { code })
}
