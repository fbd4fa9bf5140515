import { createEngine } from 'stemwork'
import { createHandler } from 'stemwork/http'
import { liveService, type LiveStems, separateStream } from 'stemwork/live'
import { expectType } from './expect-type.js'

export async function use(source: AsyncIterable<Float32Array[]>, web: ReadableStream<Float32Array[]>): Promise<void> {
  for await (const block of separateStream(source, { sampleRate: 48_000, model: 'embedded', latencyMs: 500 })) {
    expectType<LiveStems>()(block)
    expectType<Float32Array[]>()(block.stems.accompaniments)
    expectType<boolean>()(block.isLate)
  }
  const { signal } = new AbortController()
  separateStream(web, { sampleRate: 44_100, whenLate: 'wait', runtime: 'wasm', signal })
  // @ts-expect-error: samples alone do not tell the rate
  separateStream(source, { latencyMs: 500 })
  // @ts-expect-error: one of two
  separateStream(source, { sampleRate: 48_000, whenLate: 'never' })
  // @ts-expect-error: planes, not interleaved samples
  separateStream(interleaved(), { sampleRate: 48_000 })
}

async function* interleaved(): AsyncGenerator<Float32Array> {
  yield new Float32Array(2)
}

export const handler = createHandler(createEngine(), { live: { separate: liveService({ model: 'embedded' }) } })
// @ts-expect-error: what separates is not optional
createHandler(createEngine(), { live: { streams: 2 } })
