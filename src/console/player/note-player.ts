/** A note of `service/notes`. */
export interface Note {
  start: number
  end: number
  /** MIDI number. */
  pitch: number
  amplitude: number
  /** Bends of the pitch in semitones, equally spaced in time. */
  bends: readonly number[]
}

const tickMs = 100
/** Timers of background pages fire once a second. */
const aheadSeconds = 1.5
const attackSeconds = 0.01
const releaseSeconds = 0.05
const loudness = 0.3

/** Plays notes with plain tones. Positions are those of the song. */
export class NotePlayer {
  readonly duration: number
  readonly #onChange: () => void
  #notes: readonly Note[] = []
  #context: AudioContext | undefined
  /** Output of all notes that sound or are scheduled, so that they can be dropped at once. */
  #output: GainNode | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  /** Where it rests, or began to play. */
  #position = 0
  /** Time of the audio clock at which the song begins. */
  #zero = 0
  /** The first note that is not scheduled yet. */
  #next = 0

  constructor(duration: number, onChange: () => void) {
    this.duration = duration
    this.#onChange = onChange
  }

  get isPlaying(): boolean {
    return this.#output !== undefined
  }

  get position(): number {
    if (!this.#output || !this.#context) return this.#position
    const { currentTime, outputLatency } = this.#context
    return Math.max(this.#position, Math.min(this.duration, currentTime - (outputLatency || 0) - this.#zero))
  }

  /** The notes to play; may change during playback. */
  setNotes(notes: readonly Note[]): void {
    this.#notes = [...notes].sort((a, b) => a.start - b.start)
    if (this.isPlaying) this.#restart(this.position)
  }

  play(): void {
    this.#restart(this.position >= this.duration ? 0 : this.position)
    this.#onChange()
  }

  pause(): void {
    this.#position = this.position
    this.#silence()
    // Avoids processing silence.
    void this.#context?.suspend()
    this.#onChange()
  }

  seek(seconds: number): void {
    const position = Math.max(0, Math.min(this.duration, seconds))
    if (this.isPlaying) this.#restart(position)
    else this.#position = position
    this.#onChange()
  }

  close(): void {
    this.#silence()
    void this.#context?.close()
  }

  #restart(position: number): void {
    this.#silence()
    const context = (this.#context ??= new AudioContext())
    void context.resume()
    this.#output = context.createGain()
    this.#output.gain.value = loudness
    // Keeps many simultaneous notes from clipping.
    this.#output.connect(context.createDynamicsCompressor()).connect(context.destination)
    this.#position = position
    this.#zero = context.currentTime + attackSeconds - position
    this.#next = 0
    this.#tick(position)
    this.#timer = setInterval(() => this.#tick(this.position), tickMs)
  }

  #silence(): void {
    clearInterval(this.#timer)
    this.#output?.disconnect()
    this.#output = undefined
  }

  #tick(position: number): void {
    for (let note = this.#notes[this.#next]; note && note.start < position + aheadSeconds;) {
      if (note.end > position) this.#sound(note, Math.max(position, note.start))
      note = this.#notes[++this.#next]
    }
    if (position >= this.duration) this.pause()
  }

  /** @param from where in the song the sound begins: after the note's start, if playback begins within the note */
  #sound({ start, end, pitch, amplitude, bends }: Note, from: number): void {
    const [context, output] = [this.#context, this.#output]
    if (!context || !output) return
    const tone = new OscillatorNode(context, { type: 'triangle', frequency: 440 * 2 ** ((pitch - 69) / 12) })
    const level = new GainNode(context, { gain: 0 })
    const [begin, stop] = [this.#zero + from, this.#zero + end]
    level.gain.setValueAtTime(0, begin)
    level.gain.linearRampToValueAtTime(amplitude, begin + attackSeconds)
    level.gain.setTargetAtTime(0, Math.max(begin + attackSeconds, stop - releaseSeconds), releaseSeconds / 3)
    const cents = bends.slice(Math.floor((bends.length * (from - start)) / (end - start))).map((bend) => 100 * bend)
    if (cents.length > 1) tone.detune.setValueCurveAtTime(cents, begin, stop - begin)
    tone.connect(level).connect(output)
    tone.start(begin)
    tone.stop(stop + releaseSeconds)
  }
}
