import { TempoAndPitch } from '../../core/media/dsp/stretch/tempo-and-pitch.js'
import { panned } from './headroom.js'
import type { TrackMix } from './mix-settings.js'
import type { PlayerTrack } from '../player/player.js'

export interface HeardMix {
  /** By the name of the track; tracks that are missing are silent. */
  mix: Record<string, TrackMix>
  tempo: number
  semitones: number
  /** Seconds. */
  from: number
  to: number
  signal: AbortSignal
  /** @param share 0..1 */
  onProgress(share: number): void
}

export interface RenderedMix {
  /** Floats: all of the left channel, then all of the right one. */
  pieces: Blob[]
  /** The highest sample. */
  highest: number
}

/** Samples between two pauses for the page's other work. */
const blockSamples = 8192
const pieceSamples = 2 ** 17

/** Renders the tracks as they are heard into `Blob`s, which browsers keep outside of the page's memory. */
export async function renderMix(tracks: readonly PlayerTrack[], options: HeardMix): Promise<RenderedMix> {
  const { mix, tempo, semitones, from, to, signal, onProgress } = options
  const sampleRate = tracks[0]?.source.sampleRate ?? 0
  const [first, end] = [Math.round(from * sampleRate), Math.round(to * sampleRate)]
  const mixes = tracks.map(({ name }) => mix[name] ?? { gain: 0, pan: 0 })
  const sum = mixSum(mixes, Math.round((end - first) / tempo))
  // As in playback, all tracks, even silent ones, decide how each is stretched.
  const change =
    tempo === 1 && semitones === 0
      ? undefined
      : new TempoAndPitch({ sampleRate, channelCount: 2, partCount: tracks.length, tempo, semitones })
  const pull = () => {
    for (let output = change?.pull(); output && sum.isOpen(); output = change?.pull()) sum.add(output)
  }
  for (let frame = first; frame < end; frame += pieceSamples) {
    const count = Math.min(pieceSamples, end - frame)
    const read = await Promise.all(
      tracks.map(async ({ name, source }) =>
        change || mix[name]?.gain ? source.read(frame, count, signal) : [new Float32Array(0)],
      ),
    )
    const planes = read.flatMap(([left, right = left]) => [padded(left, count), padded(right, count)])
    for (let at = 0; at < count; at += blockSamples) {
      signal.throwIfAborted()
      const block = planes.map((plane) => plane.subarray(at, Math.min(count, at + blockSamples)))
      if (change) change.push(block)
      else sum.add(block)
      pull()
      onProgress((frame + at - first) / (end - first))
      await breath()
    }
  }
  change?.end()
  pull()
  return sum.finish()
}

/** Yields to the page's other work; unlike a timer, not throttled while the page is hidden. */
export function breath(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(undefined)
  })
}

function padded(plane: Float32Array | undefined, count: number): Float32Array {
  if (plane?.length === count) return plane
  const whole = new Float32Array(count)
  if (plane) whole.set(plane)
  return whole
}

/** Sums up tracks with their gain and pan. */
function mixSum(mixes: readonly TrackMix[], samples: number) {
  const pieces: Blob[] = []
  const [sumLeft, sumRight] = [new Float32Array(pieceSamples), new Float32Array(pieceSamples)]
  let [filled, missing, highest] = [0, samples, 0]
  const flush = () => {
    const planes = [sumLeft.slice(0, filled), sumRight.slice(0, filled)]
    // A local variable: one that closures share is slow to write.
    let peak = highest
    for (const plane of planes) for (const sample of plane) peak = Math.max(peak, Math.abs(sample))
    highest = peak
    pieces.push(new Blob(planes))
    sumLeft.fill(0)
    sumRight.fill(0)
    filled = 0
  }
  return {
    isOpen: () => missing > 0,
    /** @param planes two for each track; surplus samples at the end are left out */
    add(planes: readonly Float32Array[]): void {
      const count = Math.min(missing, planes[0]?.length ?? 0)
      if (filled + count > pieceSamples) flush()
      for (const [index, { gain, pan }] of mixes.entries()) {
        const [left, right] = [planes[2 * index], planes[2 * index + 1]]
        if (gain === 0 || !left || !right) continue
        const { crossed, kept } = panned(pan)
        // Factors of both input channels, for each output channel.
        const toLeft = pan < 0 ? { left: 1, right: crossed } : { left: pan > 0 ? kept : 1, right: 0 }
        const toRight = pan > 0 ? { left: crossed, right: 1 } : { left: 0, right: pan < 0 ? kept : 1 }
        addScaled(sumLeft, filled, left, gain * toLeft.left, count)
        addScaled(sumLeft, filled, right, gain * toLeft.right, count)
        addScaled(sumRight, filled, left, gain * toRight.left, count)
        addScaled(sumRight, filled, right, gain * toRight.right, count)
      }
      filled += count
      missing -= count
    },
    finish(): RenderedMix {
      flush()
      return { pieces, highest }
    },
  }
}

function addScaled(sum: Float32Array, at: number, plane: Float32Array, factor: number, count: number): void {
  if (factor === 0) return
  for (let i = 0; i < count; i++) sum[at + i] = (sum[at + i] ?? 0) + factor * (plane[i] ?? 0)
}
