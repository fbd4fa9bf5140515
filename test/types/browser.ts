import {
  canSeparate,
  createLiveNode,
  type DeviceSeparation,
  type LiveStems,
  separate,
  separateStream,
  StemworkError,
} from 'stemwork/browser'
import { expectFree, expectType } from './expect-type.js'

export async function use(file: Blob, signal: AbortSignal): Promise<void> {
  expectType<boolean>()(canSeparate())
  const separation = await separate(file, {
    signal,
    format: '24',
    maxSeconds: 600,
    assets: { worker: '/stemwork/worker.js', model: new URL('https://example.org/model.onnx') },
    onProgress: ({ progress, etaSeconds }) => {
      expectType<number>()(progress)
      expectType<number | undefined>()(etaSeconds)
    },
  })
  expectType<DeviceSeparation>()(separation)
  expectType<readonly string[]>()(separation.warnings)
  await separation.remove()
  // @ts-expect-error: the bundled model has no such stem
  void separation.stems.drums
  // @ts-expect-error: compressed files are made by the server
  await separate(file, { format: 'mp3' })
  // @ts-expect-error: a path is nothing that a page can read
  await separate('song.wav')
  expectType<boolean>()(StemworkError.is(new Error()))
}

// This project lacks the types of the Web Audio API, which the page's project has.
export async function live(
  context: Parameters<typeof createLiveNode>[0],
  source: ReadableStream<Float32Array[]>,
): Promise<void> {
  const { node, latencySeconds, ended, close } = await createLiveNode(context, {
    onLate: (seconds) => expectType<number>()(seconds),
  })
  void node
  expectType<number>()(latencySeconds)
  expectFree(close)
  close()
  await ended
  for await (const block of separateStream(source, { sampleRate: 48_000 })) expectType<LiveStems>()(block)
  // @ts-expect-error: a page has the bundled model
  separateStream(source, { sampleRate: 48_000, model: 'htdemucs' })
}
