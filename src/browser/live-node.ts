import { absolute, type DeviceAssets, notLoaded } from './assets.js'
import { type LiveStreamOptions, separateStream } from './live-stream.js'

/** @experimental */
export interface LiveNodeOptions extends Pick<LiveStreamOptions, 'latencyMs' | 'signal' | 'assets'> {
  /** Called with the total seconds so far when more of the stream passed unchanged because its stems were late. */
  onLate?(seconds: number): void
}

/**
 * A node that separates its input.
 *
 * @experimental
 */
export interface LiveNode {
  /** Output 0 has the vocals, output 1 the accompaniments; their sum is the input, `latencySeconds` later. */
  readonly node: AudioWorkletNode
  readonly latencySeconds: number
  /** Resolves when the node is closed; rejects if the network fails or cannot be loaded. It sounds until closed. */
  readonly ended: Promise<void>
  close(this: void): void
}

/** @experimental */
export interface ProcessorOptions {
  delaySamples: number
}

/** @experimental */
export type ToProcessor = { kind: 'vocals'; start: number; vocals: Float32Array[] } | { kind: 'close' }

/** @experimental */
export type FromProcessor =
  | { kind: 'heard'; planes: Float32Array[] }
  /** Samples so far for which the vocals were not ready. */
  | { kind: 'late'; samples: number }

/** Round trip from the audio thread to the page: one block, and some time for the page. */
const pageSeconds = 0.06

/**
 * Creates a Web Audio node that separates a microphone, a tab or a player live with the bundled model. It sounds from
 * the start; where stems are late, its input passes unchanged through the accompaniments.
 *
 * @example
 *   const { node } = await createLiveNode(context, { latencyMs: 1000 })
 *   context.createMediaStreamSource(microphone).connect(node)
 *   node.connect(context.destination, 1) // the accompaniments
 *
 * @throws StemworkError `MISSING_DEPENDENCY` when the script of the audio thread cannot be loaded
 *
 * @experimental
 */
export async function createLiveNode(context: BaseAudioContext, options: LiveNodeOptions = {}): Promise<LiveNode> {
  const { latencyMs = 1000, signal, assets = {}, onLate } = options
  await addProcessor(context, assets)
  const { sampleRate } = context
  const delaySamples = Math.ceil((latencyMs / 1000 + pageSeconds) * sampleRate)
  const node = new AudioWorkletNode(context, 'stemwork-live', {
    numberOfInputs: 1,
    numberOfOutputs: 2,
    outputChannelCount: [2, 2],
    channelCount: 2,
    channelCountMode: 'explicit',
    processorOptions: { delaySamples } satisfies ProcessorOptions,
  })
  const post = (message: ToProcessor) => node.port.postMessage(message)
  const closing = new AbortController()
  const heard = new ReadableStream<Float32Array[]>({
    start(blocks) {
      node.port.onmessage = ({ data }: MessageEvent<FromProcessor>) => {
        if (data.kind === 'late') onLate?.(data.samples / sampleRate)
        else if (!closing.signal.aborted) blocks.enqueue(data.planes)
      }
    },
  })
  const ended = (async () => {
    const stop = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal
    try {
      for await (const { start, stems, isLate } of separateStream(heard, {
        sampleRate,
        latencyMs,
        assets,
        signal: stop,
      }))
        if (!isLate) post({ kind: 'vocals', start, vocals: stems.vocals })
    } catch (error) {
      if (!closing.signal.aborted) throw error
    } finally {
      closing.abort()
    }
  })()
  // Not an unhandled rejection: the input is still heard.
  ended.catch(() => undefined)
  return {
    node,
    latencySeconds: delaySamples / sampleRate,
    ended,
    close() {
      closing.abort()
      post({ kind: 'close' })
      node.disconnect()
    },
  }
}

async function addProcessor({ audioWorklet }: BaseAudioContext, { liveProcessor }: DeviceAssets): Promise<void> {
  try {
    // Bundlers look for exactly this expression.
    if (liveProcessor === undefined) await audioWorklet.addModule(new URL('./live-processor.js', import.meta.url))
    else await audioWorklet.addModule(absolute(liveProcessor))
  } catch (error) {
    throw notLoaded(error)
  }
}
