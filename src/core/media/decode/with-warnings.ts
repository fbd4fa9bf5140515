import type { AudioStream } from '../dsp/audio-stream.js'

/** The stream with further warnings, which are asked for when its blocks have ended. */
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
