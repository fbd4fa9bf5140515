import type { Timeline } from './timeline.js'

/** Plays pieces of all tracks, one after the other. */
export interface PlayerOutput {
  /** Seconds that were given but not played yet. */
  readonly ahead: number
  /** @param tracks the planes of each track, from `position` on, in seconds */
  give(tracks: readonly Float32Array<ArrayBuffer>[][], position: number, frames: number): void
  /** Marks the end of the pieces. Resolves when all of them were played. */
  end(signal: AbortSignal): Promise<void>
  stop(): void
  /** Changes the tempo during playback, where that is possible. */
  setTempo?(tempo: number): void
}

/** Time to hand a piece of every track to the audio hardware in advance. */
const leadSeconds = 0.08
const checkMs = 200

export type ClockedContext = Pick<AudioContext, 'currentTime' | 'createBuffer' | 'createBufferSource'>

/** The part of a `Timeline` that the output uses. */
interface Schedule {
  heard: Timeline['add']
  end(): number | undefined
}

/** Plays the tracks unchanged: starts their pieces for a stretch of time at the same instant of the audio clock. */
export function scheduledOutput(
  context: ClockedContext,
  sampleRate: number,
  targets: readonly (AudioNode | undefined)[],
  timeline: Schedule,
): PlayerOutput {
  const nodes = new Set<AudioBufferSourceNode>()
  const start = (planes: readonly Float32Array<ArrayBuffer>[], target: AudioNode | undefined, at: number) => {
    const frames = planes[0]?.length ?? 0
    if (frames <= 0 || !target) return
    const buffer = context.createBuffer(planes.length, frames, sampleRate)
    planes.forEach((plane, index) => buffer.copyToChannel(plane, index))
    const node = context.createBufferSource()
    node.buffer = buffer
    node.connect(target)
    node.onended = () => {
      node.disconnect()
      nodes.delete(node)
    }
    nodes.add(node)
    node.start(at)
  }
  return {
    get ahead() {
      return (timeline.end() ?? 0) - context.currentTime
    },
    give(tracks, position, frames) {
      const { currentTime } = context
      let at = timeline.end()
      if (at === undefined || at < currentTime + leadSeconds / 4) {
        // At the start, or when the network was too slow, all tracks continue together from here.
        at = Math.ceil((currentTime + leadSeconds) * sampleRate) / sampleRate
      }
      timeline.heard({ at, position, seconds: frames / sampleRate, speed: 1 })
      for (const [index, planes] of tracks.entries()) start(planes, targets[index], at)
    },
    async end(signal) {
      while (this.ahead > 0 && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, checkMs))
    },
    stop() {
      for (const node of nodes) node.stop()
    },
  }
}
