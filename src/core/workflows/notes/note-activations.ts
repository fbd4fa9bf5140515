import type { AudioStream } from '../../media/dsp/audio-stream.js'
import { withChannels } from '../../media/dsp/edits.js'
import { resample } from '../../media/dsp/resample.js'
import type { Network } from '../../models/session/network.js'

// Inputs and outputs of the network (R. M. Bittner et al., A Lightweight Instrument-Agnostic Model for Polyphonic Note
// Transcription and Multipitch Estimation, ICASSP 2022): windows of mono audio, and a row of pitches for each frame.
const sampleRate = 22_050
const hop = 256
const windowSamples = 43_844
const windowFrames = 172
/** Frames at either end of a window that have too little context; neighbouring windows have them in their middle. */
const edgeFrames = 15
const keptFrames = windowFrames - 2 * edgeFrames
const windowHop = windowSamples - 2 * edgeFrames * hop
const inputName = 'serving_default_input_2:0'
const outputNames = {
  notes: 'StatefulPartitionedCall:1',
  onsets: 'StatefulPartitionedCall:2',
  contours: 'StatefulPartitionedCall:0',
} as const

/** Pitches that the network tells apart: those of a piano. */
export const pitchCount = 88
/** MIDI number of the lowest pitch. */
export const lowestPitch = 21
export const framesPerSecond = sampleRate / hop
/** Contour bins per semitone. */
export const bendsPerSemitone = 3
const contourCount = pitchCount * bendsPerSemitone
/** Largest bend of a pitch, in contour bins. */
const mostBend = 25
/** A bend is likelier the smaller it is. */
const bendWeights = Float64Array.from({ length: 2 * mostBend + 1 }, (_, index) =>
  Math.exp(-0.5 * ((index - mostBend) / 5) ** 2),
)

/** The network's output for each frame: 68 kB for a second of audio. */
export interface NoteActivations {
  frameCount: number
  /** Length of the audio. */
  seconds: number
  /** 0..1, `pitchCount` values per frame: how certain it is that the pitch sounds. */
  notes: Float32Array
  /** In the same order: how certain it is that the pitch begins here. */
  onsets: Float32Array
  /** In the same order: how far its fundamental is from the pitch, in thirds of a semitone. */
  bends: Int8Array
}

/** Start of a frame, in seconds. Windows are not a whole number of frames apart. */
export function secondsOfFrame(frame: number): number {
  return (Math.floor(frame / keptFrames) * windowHop + (frame % keptFrames) * hop) / sampleRate
}

/**
 * Runs the network basic-pitch over a stream of any rate and number of channels.
 *
 * @throws the reason of `signal`
 */
export async function noteActivations(
  stream: AudioStream,
  network: Network,
  signal?: AbortSignal,
): Promise<NoteActivations> {
  const gathered = new Gathered()
  // The first window begins before the audio, by the frames that are dropped.
  let window = new Float32Array(windowSamples)
  let filled = edgeFrames * hop
  let sampleCount = 0
  const run = async () => {
    gathered.add(await activationsOf(window, network))
    const next = new Float32Array(windowSamples)
    next.set(window.subarray(windowHop))
    window = next
    filled -= windowHop
  }
  for await (const { channels } of resample(withChannels(stream, 1), sampleRate).blocks) {
    signal?.throwIfAborted()
    const samples = channels[0]!
    for (let from = 0; from < samples.length;) {
      const taken = Math.min(samples.length - from, windowSamples - filled)
      window.set(samples.subarray(from, from + taken), filled)
      filled += taken
      from += taken
      if (filled === windowSamples) await run()
    }
    sampleCount += samples.length
  }
  const frameCount = Math.floor((sampleCount / windowHop) * keptFrames)
  while (gathered.frameCount < frameCount) await run()
  return { frameCount, seconds: sampleCount / sampleRate, ...gathered.first(frameCount) }
}

type WindowActivations = Record<keyof typeof outputNames, Float32Array>

/** @param window is copied, because the network's thread takes over its inputs */
async function activationsOf(window: Float32Array, network: Network): Promise<WindowActivations> {
  const row = (width: number) => ({ dims: [1, windowFrames, width], data: new Float32Array(windowFrames * width) })
  const { fetches } = await network.run(
    { [inputName]: { dims: [1, windowSamples, 1], data: window.slice() } },
    {
      [outputNames.notes]: row(pitchCount),
      [outputNames.onsets]: row(pitchCount),
      [outputNames.contours]: row(contourCount),
    },
  )
  const kept = (name: string, width: number) =>
    fetches[name]!.data.subarray(edgeFrames * width, (windowFrames - edgeFrames) * width)
  return {
    notes: kept(outputNames.notes, pitchCount),
    onsets: kept(outputNames.onsets, pitchCount),
    contours: kept(outputNames.contours, contourCount),
  }
}

/** The activations of all windows so far, in arrays that double when full. */
class Gathered {
  frameCount = 0
  #notes = new Float32Array(keptFrames * pitchCount)
  #onsets = new Float32Array(keptFrames * pitchCount)
  #bends = new Int8Array(keptFrames * pitchCount)

  add({ notes, onsets, contours }: WindowActivations): void {
    const from = this.frameCount * pitchCount
    if (from + notes.length > this.#notes.length) {
      this.#notes = doubled(this.#notes, new Float32Array(2 * this.#notes.length))
      this.#onsets = doubled(this.#onsets, new Float32Array(2 * this.#onsets.length))
      this.#bends = doubled(this.#bends, new Int8Array(2 * this.#bends.length))
    }
    this.#notes.set(notes, from)
    this.#onsets.set(onsets, from)
    for (let frame = 0; frame < keptFrames; frame++) {
      const row = contours.subarray(frame * contourCount, (frame + 1) * contourCount)
      for (let pitch = 0; pitch < pitchCount; pitch++)
        this.#bends[from + frame * pitchCount + pitch] = bendOf(row, bendsPerSemitone * pitch)
    }
    this.frameCount += keptFrames
  }

  first(frameCount: number): Pick<NoteActivations, 'notes' | 'onsets' | 'bends'> {
    const end = frameCount * pitchCount
    return {
      notes: this.#notes.subarray(0, end),
      onsets: this.#onsets.subarray(0, end),
      bends: this.#bends.subarray(0, end),
    }
  }
}

function doubled<T extends Float32Array | Int8Array>(from: T, to: T): T {
  to.set(from)
  return to
}

/**
 * The strongest contour near `centre`, as a distance from it, less one: the contours of a tone in tune peak one bin too
 * high, so basic-pitch bends all notes by a third of a semitone (https://github.com/spotify/basic-pitch/issues/87).
 */
function bendOf(contours: Float32Array, centre: number): number {
  let best = -1
  let bend = 0
  for (let i = Math.max(0, centre - mostBend); i <= Math.min(contourCount - 1, centre + mostBend); i++) {
    const strength = contours[i]! * bendWeights[i - centre + mostBend]!
    if (strength > best) {
      best = strength
      bend = i - centre - 1
    }
  }
  return bend
}
