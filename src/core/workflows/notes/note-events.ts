import {
  bendsPerSemitone,
  framesPerSecond,
  lowestPitch,
  type NoteActivations,
  pitchCount,
  secondsOfFrame,
} from './note-activations.js'
import type { NoteOptions } from './note-options.js'

/** Frames below the threshold after which a note has ended: 0.13 s. */
const pauseFrames = 11
/** Frames over which a rise of a note counts as its beginning. */
const riseFrames = 2

export interface Note {
  /** In seconds. */
  start: number
  /** In seconds. */
  end: number
  /** MIDI number: 60 is the middle C. */
  pitch: number
  /** 0..1: the mean strength. */
  amplitude: number
  /** Distance from the pitch in semitones, at equal intervals of the note: one for each 11.6 ms. */
  bends: number[]
}

/**
 * Finds the notes in activations as basic-pitch does: first those with a clear onset, from the last to the first, then
 * other sustained sounds, the strongest first.
 *
 * @returns sorted by start, then pitch
 */
export function notesOf(activations: NoteActivations, options: NoteOptions): Note[] {
  const finder = new NoteFinder(activations, options)
  finder.findFromOnsets()
  if (options.melodiaTrick) finder.findFromStrongest()
  return finder.notes.sort((one, other) => one.start - other.start || one.pitch - other.pitch)
}

class NoteFinder {
  readonly notes: Note[] = []
  readonly #activations: NoteActivations
  readonly #options: NoteOptions
  readonly #shortestFrames: number
  /** Activations of the wanted pitches. */
  readonly #heard: Float32Array
  readonly #onsets: Float32Array
  /** Activations in which no note has been found yet. */
  readonly #left: Float32Array

  constructor(activations: NoteActivations, options: NoteOptions) {
    this.#activations = activations
    this.#options = options
    this.#shortestFrames = Math.round((options.minimumNoteLength / 1000) * framesPerSecond)
    this.#heard = wanted(activations.notes, options)
    this.#onsets = withRises(wanted(activations.onsets, options), this.#heard)
    this.#left = this.#heard.slice()
  }

  findFromOnsets(): void {
    const onsets = this.#onsets
    for (let frame = this.#activations.frameCount - 2; frame > 0; frame--) {
      for (let pitch = pitchCount - 1; pitch >= 0; pitch--) {
        const i = frame * pitchCount + pitch
        const isPeak = onsets[i]! > onsets[i - pitchCount]! && onsets[i]! > onsets[i + pitchCount]!
        if (!isPeak || onsets[i]! < this.#options.onsetThreshold) continue
        const end = this.#follow(frame, pitch, 1)
        if (end - frame <= this.#shortestFrames) continue
        for (let at = frame; at < end; at++) this.#take(at, pitch)
        this.#add(frame, end, pitch)
      }
    }
  }

  findFromStrongest(): void {
    const { frameThreshold } = this.#options
    const energy = this.#left.slice()
    // The remaining activations only decrease, so sorting once is enough.
    const strongest = [...energy.keys()].filter((i) => energy[i]! > frameThreshold)
    strongest.sort((one, other) => energy[other]! - energy[one]! || one - other)
    for (const i of strongest) {
      if (this.#left[i] === 0) continue
      this.#left[i] = 0
      const [frame, pitch] = [Math.floor(i / pitchCount), i % pitchCount]
      const take = (at: number) => this.#take(at, pitch)
      const end = this.#follow(frame, pitch, 1, take) - 1
      const start = this.#follow(frame, pitch, -1, take) + 1
      if (end - start > this.#shortestFrames) this.#add(start, end, pitch)
    }
  }

  /** The frame after the last one in which the pitch sounds, in the direction of `step`. */
  #follow(frame: number, pitch: number, step: 1 | -1, visit?: (frame: number) => void): number {
    const limit = step === 1 ? this.#activations.frameCount - 1 : 0
    let pause = 0
    let at = frame + step
    while ((limit - at) * step > 0 && pause < pauseFrames) {
      pause = this.#left[at * pitchCount + pitch]! < this.#options.frameThreshold ? pause + 1 : 0
      visit?.(at)
      at += step
    }
    return at - step * pause
  }

  /** Clears a pitch and its neighbours, in which the note is heard as well. */
  #take(frame: number, pitch: number): void {
    const i = frame * pitchCount + pitch
    this.#left[i] = 0
    if (pitch > 0) this.#left[i - 1] = 0
    if (pitch < pitchCount - 1) this.#left[i + 1] = 0
  }

  #add(startFrame: number, endFrame: number, pitch: number): void {
    const bends: number[] = []
    let sum = 0
    for (let frame = startFrame; frame < endFrame; frame++) {
      const i = frame * pitchCount + pitch
      sum += this.#heard[i]!
      bends.push(this.#activations.bends[i]! / bendsPerSemitone)
    }
    const [start, end] = [secondsOfFrame(startFrame), secondsOfFrame(endFrame)]
    this.notes.push({ start, end, pitch: lowestPitch + pitch, amplitude: sum / bends.length, bends })
  }
}

/** A copy in which only pitches in the given range sound. */
function wanted(activations: Float32Array, { minimumFrequency, maximumFrequency }: NoteOptions): Float32Array {
  const lowest = minimumFrequency === undefined ? 0 : nearestPitch(minimumFrequency)
  const above = maximumFrequency === undefined ? pitchCount : nearestPitch(maximumFrequency)
  return activations.map((value, i) => (i % pitchCount >= lowest && i % pitchCount < above ? value : 0))
}

function nearestPitch(hertz: number): number {
  return Math.round(69 + 12 * Math.log2(hertz / 440)) - lowestPitch
}

/** A pitch that becomes stronger counts as beginning there, whatever the network says about onsets. */
function withRises(onsets: Float32Array, heard: Float32Array): Float32Array {
  const rises = new Float32Array(onsets.length)
  let [mostRise, mostOnset] = [0, 0]
  for (let i = 0; i < rises.length; i++) {
    mostOnset = Math.max(mostOnset, onsets[i]!)
    if (i < riseFrames * pitchCount) continue
    const [now, before, earlier] = [heard[i]!, heard[i - pitchCount]!, heard[i - 2 * pitchCount]!]
    rises[i] = Math.max(0, now - Math.max(before, earlier))
    mostRise = Math.max(mostRise, rises[i]!)
  }
  return mostRise === 0 ? onsets : onsets.map((onset, i) => Math.max(onset, (mostOnset * rises[i]!) / mostRise))
}
