import { openLiveThread } from './core/workflows/separation/live/open-live-thread.js'
import type { LiveStems } from './core/workflows/separation/live/live-mix.js'
import type { LiveSource } from './core/workflows/separation/live/pcm-source.js'
import { type LiveOptions, separateLive } from './core/workflows/separation/live/separate-live.js'
import { rawBlocks, rawEncodings } from './core/media/decode/pcm/raw-pcm.js'
import { PcmEncoder } from './core/media/encode/pcm-encoder.js'
import { embeddedModelName, resolveModel } from './core/models/registry.js'
import type { RuntimeChoice } from './core/models/session/runtime.js'

export type { LiveStems } from './core/workflows/separation/live/live-mix.js'
export type { LiveSource } from './core/workflows/separation/live/pcm-source.js'

/** @experimental */
export interface StreamOptions extends LiveOptions {
  /** Name of a model, or path of a manifest or its folder; must be much faster than real time. Default: `embedded`. */
  model?: string
  /** Time from a sample's arrival to that of its stems, 250 to 4,000 ms; more is better. Default: 1,000. */
  latencyMs?: number
  /** Runtime of the network. Default: that of `STEMWORK_RUNTIME`, or `auto`. */
  runtime?: RuntimeChoice
}

/**
 * Yields the vocals and accompaniments of a stream, block by block as it arrives, at its rate and with its channels.
 * Their sum is the stream. The source is read only when stems are requested; memory does not grow, and the sizes of
 * blocks do not affect the samples. Runs in a separate thread, which ends with the stream.
 *
 * @example
 *   for await (const { stems } of separateStream(microphone, { sampleRate: 48_000, latencyMs: 500 }))
 *     play(stems.accompaniments)
 *
 * @throws StemworkError `INVALID_OPTIONS` for an invalid option, `BAD_INPUT` for a block unlike the first,
 * `MODEL_UNAVAILABLE` for a model that must be pulled first, `MISSING_DEPENDENCY` if no runtime can run it; the
 * signal's reason
 *
 * @experimental
 */
export async function* separateStream(
  source: LiveSource,
  options: StreamOptions,
): AsyncGenerator<LiveStems, void, void> {
  const { model: choice = embeddedModelName, latencyMs = 1000, sampleRate, runtime } = options
  const { manifest, paths } = await resolveModel(choice)
  const open = (channelCount: number) =>
    openLiveThread({ model: { manifest, paths }, stream: { sampleRate, channelCount, latencyMs }, runtime })
  yield* separateLive(source, open, options)
}

/**
 * Format of the samples that a service receives: raw, little-endian and interleaved.
 *
 * @experimental
 */
export interface LiveServiceFormat {
  sampleRate: number
  channels: number
  format: 's16' | 's24' | 'f32'
  stem: 'vocals' | 'accompaniments'
  latencyMs: number
}

/** @experimental */
export interface LivePiece {
  /** Samples of the stem, in the format of the input. */
  bytes: Uint8Array
  seconds: number
  isLate: boolean
}

/**
 * Returns the function with which the HTTP service separates streams.
 *
 * @example createHandler(engine, { live: { separate: liveService(), streams: 2 } })
 *
 * @experimental
 */
export function liveService(
  options: Pick<StreamOptions, 'model' | 'runtime'> = {},
): (
  samples: AsyncIterable<Uint8Array>,
  format: LiveServiceFormat,
  signal: AbortSignal,
) => AsyncGenerator<LivePiece, void, void> {
  return async function* (samples, { sampleRate, channels, format, stem, latencyMs }, signal) {
    const blocks = rawBlocks(samples, { encoding: rawEncodings[format], channelCount: channels })
    const encoder = new PcmEncoder(pcmFormats[format])
    for await (const { stems, isLate } of separateStream(blocks, { ...options, sampleRate, latencyMs, signal })) {
      // A copy: the encoder reuses its memory.
      const bytes = encoder.encode(stems[stem]).slice()
      yield { bytes, seconds: bytes.length / (channels * rawEncodings[format].bytes) / sampleRate, isLate }
    }
  }
}

const pcmFormats = { s16: '16', s24: '24', f32: '32f' } as const
