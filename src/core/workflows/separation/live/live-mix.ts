import { SampleWindow } from '../../../media/dsp/sample-window.js'
import type { AudioBlock } from '../../../media/dsp/audio-stream.js'

/** A separated stretch of the stream: `vocals + accompaniments` equals the input. */
export interface LiveStems {
  /** Number of samples of the stream before this stretch. */
  start: number
  /** One plane for each channel of the stream. */
  stems: { vocals: Float32Array[]; accompaniments: Float32Array[] }
  /** The estimate came too late: all of the input is in the accompaniments. */
  isLate: boolean
}

/** Combines a stream with estimates of its vocals, passes it unchanged where they are late, and fades between both. */
export function liveMix(channelCount: number, fadeSamples: number) {
  const input = new SampleWindow(channelCount, 8 * fadeSamples)
  const estimated = new SampleWindow(channelCount, 8 * fadeSamples)
  /** Gain of the estimates: 0 while the input passes unchanged. */
  let gain = 1

  const fadeTo = (target: 0 | 1, planes: readonly Float32Array[]) => {
    const length = planes[0]!.length
    for (let i = 0; i < length && (gain !== 1 || target !== 1); i++) {
      if (gain < target) gain = Math.min(target, gain + 1 / fadeSamples)
      if (gain > target) gain = Math.max(target, gain - 1 / fadeSamples)
      for (const plane of planes) plane[i]! *= gain
    }
  }

  const upTo = (to: number, isLate: boolean): LiveStems | undefined => {
    const { start } = input
    if (to <= start) return undefined
    const known = Math.max(start, Math.min(to, estimated.end))
    const vocals = Array.from({ length: channelCount }, () => new Float32Array(to - start))
    if (known > start) {
      const estimate = estimated.views(start, known)
      for (const [channel, plane] of vocals.entries()) plane.set(estimate[channel]!)
    }
    fadeTo(isLate ? 0 : 1, vocals)
    const accompaniments = input
      .views(start, to)
      .map((plane, channel) => plane.map((value, i) => value - vocals[channel]![i]!))
    input.dropBefore(to)
    estimated.dropBefore(to)
    return { start, stems: { vocals, accompaniments }, isLate }
  }

  return {
    /** Number of samples received. */
    get end() {
      return input.end
    },

    /** Number of samples returned. */
    get done() {
      return input.start
    },

    append: (planes: readonly Float32Array[]) => input.append(planes),

    /** Takes the next estimates; estimates of samples that were already returned are dropped. */
    add(blocks: readonly AudioBlock[]): void {
      for (const { channels } of blocks) estimated.append(channels)
      estimated.dropBefore(input.start)
    },

    /** All separated samples, except those kept for a fade-out in case the next estimate is late. */
    separated: () => upTo(Math.min(estimated.end - fadeSamples, input.end), false),

    /** The remaining samples, when all estimates have arrived. */
    rest: () => upTo(input.end, false),

    /** The input up to `to`, without estimates. */
    passed: (to: number) => upTo(to, true),
  }
}
