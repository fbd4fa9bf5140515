import type { AudioStream } from '../dsp/audio-stream.js'
import { speakersOf } from '../dsp/stereo.js'
import { type Loudness, LoudnessMeter } from './loudness-meter.js'

export interface MeasuredLoudness extends Loudness {
  seconds: number
}

/** Measures a stream, which is read to its end. */
export async function measureLoudness(stream: AudioStream, signal?: AbortSignal): Promise<MeasuredLoudness> {
  const meter = new LoudnessMeter(stream.sampleRate, speakersOf(stream))
  let sampleCount = 0
  for await (const { channels } of stream.blocks) {
    signal?.throwIfAborted()
    meter.add(channels)
    sampleCount += channels[0]!.length
  }
  return { ...meter.finish(), seconds: sampleCount / stream.sampleRate }
}

/** The figures for JSON: with two decimals, and null for levels that cannot be measured. */
export function loudnessFigures(loudness: MeasuredLoudness) {
  const { integrated, gate, range, rangeLow, rangeHigh, maxMomentary, maxShortTerm, truePeak, samplePeak } = loudness
  return {
    integratedLufs: figure(integrated),
    rangeLu: Number.isFinite(rangeLow) ? figure(range) : null,
    rangeLowLufs: figure(rangeLow),
    rangeHighLufs: figure(rangeHigh),
    maxMomentaryLufs: figure(maxMomentary),
    maxShortTermLufs: figure(maxShortTerm),
    truePeakDbtp: figure(truePeak),
    samplePeakDbfs: figure(samplePeak),
    gateLufs: figure(gate),
  }
}

/** The whole report: the figures and their course. */
export function loudnessReport(loudness: MeasuredLoudness, { sampleRate, channelCount }: AudioStream) {
  const { seconds, course } = loudness
  return {
    standard: 'ITU-R BS.1770-5, EBU R 128',
    seconds,
    sampleRate,
    channels: channelCount,
    ...loudnessFigures(loudness),
    course: {
      intervalSeconds: course.intervalSeconds,
      momentaryLufs: Array.from(course.momentary, figure),
      shortTermLufs: Array.from(course.shortTerm, figure),
    },
  }
}

function figure(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * 100) / 100 || 0 : null
}
