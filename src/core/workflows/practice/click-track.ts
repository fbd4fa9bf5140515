import type { MusicAnalysis } from '../../media/analysis/analyze-audio.js'
import type { AudioBlock, AudioStream } from '../../media/dsp/audio-stream.js'
import { clickSound } from '../../media/dsp/click-sound.js'

/** A click at each beat, for as long as the song lasts. */
export function clickTrack(
  { beats, downbeats }: Pick<MusicAnalysis, 'beats' | 'downbeats'>,
  { sampleRate, sampleCount }: { sampleRate: number; sampleCount: number },
): AudioStream {
  const [accent, beat] = [clickSound('accent', sampleRate), clickSound('beat', sampleRate)]
  const accented = new Set(downbeats?.times)
  const clicks = beats.map((time) => ({
    at: Math.round(time * sampleRate),
    samples: accented.has(time) ? accent : beat,
  }))
  return { sampleRate, channelCount: 1, sampleCount, format: 'click', blocks: blocksOf(clicks, sampleCount) }
}

interface Click {
  at: number
  samples: Float32Array
}

async function* blocksOf(clicks: readonly Click[], sampleCount: number): AsyncGenerator<AudioBlock> {
  let position = 0
  const upTo = function* (end: number): Generator<AudioBlock> {
    for (; position < end; position = Math.min(end, position + silence.length))
      yield { channels: [silence.subarray(0, end - position)] }
  }
  for (const [index, { at, samples }] of clicks.entries()) {
    if (at >= sampleCount) break
    yield* upTo(at)
    const end = Math.min(at + samples.length, clicks[index + 1]?.at ?? sampleCount, sampleCount)
    if (end > at) yield { channels: [samples.subarray(0, end - at)] }
    position = Math.max(position, end)
  }
  yield* upTo(sampleCount)
}

const silence = new Float32Array(32_768)
