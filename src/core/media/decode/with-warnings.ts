import type { AudioStream } from '../dsp/audio-stream.js'

/** Adds warnings to a stream; `further` is called when its blocks have ended. */
export function withWarnings(stream: AudioStream, further: () => readonly string[]): AudioStream {
  const warnings: string[] = []
  return {
    ...stream,
    warnings,
    blocks: (async function* () {
      yield* stream.blocks
      warnings.push(...(stream.warnings ?? []), ...further())
    })(),
  }
}
