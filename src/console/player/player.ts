import { type Channel, meterSamples, openChannel } from './channels.js'
import type { PcmSource } from '../sources/pcm-source.js'
import { type ClockedContext, type PlayerOutput, scheduledOutput } from './scheduled-output.js'
import { Timeline } from './timeline.js'
import { type CountIn, type Loop, pieceSeconds, type PlayerTrack, TrackPieces } from '../sources/track-pieces.js'

export { clickName, type CountIn, type Loop, type PlayerTrack } from '../sources/track-pieces.js'

/** The part of an `AudioContext` that the player uses. */
export type PlayerContext = Pick<
  AudioContext,
  | 'createAnalyser'
  | 'createGain'
  | 'createStereoPanner'
  | 'destination'
  | 'outputLatency'
  | 'resume'
  | 'suspend'
  | 'close'
> &
  ClockedContext

export interface PlayerOptions {
  /** Called when playback starts, waits, pauses or ends. */
  onChange(): void
  onError(error: unknown): void
  /** Count-in of the click track before the song starts. */
  countIn?(position: number): CountIn | undefined
  /** The original song, at the rate of its tracks: played where tracks are not made yet. */
  whole?: PcmSource
  createContext?(sampleRate: number): PlayerContext
}

const aheadSeconds = 8
/** Less than usual, so that tracks are heard soon after they are made. */
const wholeAheadSeconds = 1.5 * pieceSeconds
const checkMs = 200
const fadeSeconds = 0.015
export const shortestLoopSeconds = 0.1

interface Run {
  stop: AbortController
  output?: PlayerOutput
  /** Stretches handed to the audio hardware; empty while the first piece is loading. */
  timeline: Timeline
  from: number
  countIn?: CountIn
}

/**
 * Plays tracks locked together, sample for sample: the pieces of all tracks for a stretch of time are started at the
 * same instant of one audio clock, and none before all of them are loaded.
 */
export class Player {
  readonly #pieces: TrackPieces
  readonly #options: PlayerOptions
  readonly #sampleRate: number
  readonly #volumes = new Map<string, { volume: number; pan: number }>()
  readonly #channels = new Map<string, Channel>()
  readonly #meterSamples = new Float32Array(meterSamples)
  #master: GainNode | undefined
  #limiter: AudioNode | undefined
  #masterVolume = 1
  #tempo = 1
  #semitones = 0
  #loop: Loop | undefined
  #context: PlayerContext | undefined
  #run: Run | undefined
  #restAt = 0

  /** All tracks have the same sample rate. */
  constructor(tracks: readonly PlayerTrack[], options: PlayerOptions) {
    this.#pieces = new TrackPieces(tracks, options.whole)
    this.#options = options
    this.#sampleRate = this.#pieces.sampleRate
  }

  /** Length of the whole song in seconds or, where that is unknown while tracks grow, of what is made. */
  get duration(): number {
    return this.#pieces.promised / this.#sampleRate
  }

  /** How much of the tracks is made, in seconds. */
  get made(): number {
    return this.#pieces.made / this.#sampleRate
  }

  /** How much can be played, including the whole song, in seconds. */
  get playable(): number {
    return this.#pieces.playable / this.#sampleRate
  }

  get isPlaying(): boolean {
    return this.#run !== undefined
  }

  /** Whether playback was requested, but the samples are still loading. */
  get isWaiting(): boolean {
    return this.#run !== undefined && this.#run.timeline.isEmpty
  }

  /** Seconds, as heard: the device plays later than the audio clock says, where the browser knows by how much. */
  get position(): number {
    return this.#positionBehind(this.#context?.outputLatency ?? 0)
  }

  #positionBehind(seconds: number): number {
    const run = this.#run
    if (!run) return this.#restAt
    if (run.timeline.isEmpty || !this.#context) return run.from
    return Math.max(0, Math.min(this.playable, run.timeline.positionAt(this.#context.currentTime - seconds)))
  }

  get loop(): Loop | undefined {
    return this.#loop
  }

  get tempo(): number {
    return this.#tempo
  }

  get semitones(): number {
    return this.#semitones
  }

  /**
   * Call it from a click or a key press: browsers allow no sound before one.
   *
   * @param isCounted whether to count in, if that is switched on
   */
  play(isCounted = true): void {
    if (this.#run) return
    this.#context ??= this.#open()
    void this.#context.resume()
    const from = this.#restAt >= this.duration ? 0 : Math.min(this.#restAt, this.playable)
    const countIn = isCounted ? this.#options.countIn?.(from) : undefined
    const run: Run = { stop: new AbortController(), timeline: new Timeline(), from, countIn }
    this.#run = run
    this.#feed(run, this.#context).catch((error: unknown) => {
      if (run.stop.signal.aborted) return
      this.pause()
      this.#options.onError(error)
    })
    this.#options.onChange()
  }

  pause(): void {
    this.#restAt = this.position
    this.#rest()
  }

  seek(seconds: number): void {
    const wasPlaying = this.isPlaying
    this.#end()
    this.#restAt = Math.max(0, Math.min(this.playable, seconds))
    if (wasPlaying && this.#restAt < this.duration) this.play(false)
    else this.#options.onChange()
  }

  /**
   * Repeats a stretch, and seeks into it if the position is outside; undefined removes the loop. Seeking outside of the
   * loop is possible, and plays from there.
   */
  setLoop(loop: Loop | undefined): void {
    const cut = loop && { ...loop, to: Math.min(loop.to, this.playable) }
    const set = cut && cut.to - cut.from >= shortestLoopSeconds ? cut : undefined
    this.#loop = set
    const position = this.#positionBehind(0)
    this.seek(set && (position < set.from || position >= set.to) ? set.from : position)
  }

  /** @param tempo 0.5..1.5; the pitch stays. */
  setTempo(tempo: number): void {
    this.#tempo = tempo
    const output = this.#run?.output
    if (!output?.setTempo || this.#isPlain) return this.seek(this.#positionBehind(0))
    output.setTempo(tempo)
    this.#options.onChange()
  }

  /** @param semitones -12..12; the tempo stays. */
  setSemitones(semitones: number): void {
    this.#semitones = semitones
    this.seek(this.#positionBehind(0))
  }

  /**
   * @param volume from 0; 1 leaves the track as it is.
   * @param pan -1 (left) to 1 (right).
   */
  setVolume(name: string, volume: number, pan = 0): void {
    this.#volumes.set(name, { volume, pan })
    const channel = this.#channels.get(name)
    this.#fade(channel?.gain.gain, volume)
    this.#fade(channel?.panner.pan, pan)
  }

  /** @param volume 0..1, over all tracks. */
  setMasterVolume(volume: number): void {
    this.#masterVolume = volume
    this.#fade(this.#master?.gain, volume)
  }

  /** Current highest sample of a track, 0..1 and above. */
  level(name: string): number {
    const meter = this.#channels.get(name)?.meter
    if (!meter || !this.isPlaying) return 0
    meter.getFloatTimeDomainData(this.#meterSamples)
    return this.#meterSamples.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0)
  }

  /** Replaces the tracks by others of the same song. Tracks of the same names are replaced without a break. */
  replace(tracks: readonly PlayerTrack[]): void {
    const names = String(this.#pieces.names)
    this.#pieces.replace(tracks)
    if (String(this.#pieces.names) === names) return
    if (this.#context && this.#master) this.#openChannels(this.#context, this.#master)
    this.seek(this.#positionBehind(0))
  }

  close(): void {
    this.#end()
    void this.#context?.close()
    this.#context = undefined
  }

  #fade(param: AudioParam | undefined, value: number): void {
    if (this.#context) param?.setTargetAtTime(value, this.#context.currentTime, fadeSeconds)
  }

  #open(): PlayerContext {
    // At the tracks' own rate no piece is resampled, so pieces join without a click.
    const create =
      this.#options.createContext ?? ((sampleRate) => new AudioContext({ sampleRate, latencyHint: 'playback' }))
    const context = create(this.#sampleRate)
    const master = context.createGain()
    master.gain.value = this.#masterVolume
    master.connect(context.destination)
    this.#master = master
    this.#openChannels(context, master)
    return context
  }

  #openChannels(context: PlayerContext, master: AudioNode): void {
    for (const name of this.#pieces.names)
      if (!this.#channels.has(name)) this.#channels.set(name, openChannel(context, master, this.#volumes.get(name)))
  }

  /** Stops playback and suspends the context, which avoids processing silence. */
  #rest(): void {
    this.#end()
    void this.#context?.suspend()
    this.#options.onChange()
  }

  #end(): void {
    this.#run?.stop.abort()
    this.#run?.output?.stop()
    this.#run = undefined
  }

  /** Whether tracks are heard unchanged, sample for sample. */
  get #isPlain(): boolean {
    return this.#tempo === 1 && this.#semitones === 0
  }

  async #feed(run: Run, context: PlayerContext): Promise<void> {
    const { signal } = run.stop
    const output = this.#isPlain ? this.#scheduled(run, context) : await this.#stretched(run, context)
    if (signal.aborted) return output.stop()
    run.output = output
    const part = { from: Math.round(run.from * this.#sampleRate), loop: this.#loop, countIn: run.countIn, signal }
    for await (const { tracks, frame, frames, isWhole } of this.#pieces.from(part)) {
      output.give(tracks, frame / this.#sampleRate, frames)
      while (output.ahead > (isWhole ? wholeAheadSeconds : aheadSeconds)) {
        await new Promise((resolve) => setTimeout(resolve, checkMs))
        if (signal.aborted) return
      }
    }
    if (signal.aborted) return
    await output.end(signal)
    if (signal.aborted) return
    this.#restAt = 0
    this.#rest()
  }

  #scheduled({ timeline }: Run, context: PlayerContext): PlayerOutput {
    if (this.#limiter) this.#route(context)
    const targets = this.#targets
    return scheduledOutput(context, this.#sampleRate, targets, {
      heard: (stretch) => this.#heard(timeline, stretch),
      end: () => timeline.end,
    })
  }

  get #targets(): (AudioNode | undefined)[] {
    return this.#pieces.names.map((name) => this.#channels.get(name)?.gain)
  }

  /** Connects the mix. Unchanged tracks need no limiter, because their highest samples are known beforehand. */
  #route({ destination }: PlayerContext, limiter?: AudioNode): void {
    this.#master?.disconnect()
    this.#master?.connect(limiter ?? destination)
    limiter?.connect(destination)
  }

  async #stretched({ timeline }: Run, context: PlayerContext): Promise<PlayerOutput> {
    const { openLimiter, openStretcher } = await import('./stretcher.js')
    this.#limiter ??= await openLimiter(context as AudioContext)
    this.#route(context, this.#limiter)
    const targets = this.#targets
    const options = { partCount: targets.length, tempo: this.#tempo, semitones: this.#semitones }
    return openStretcher(context as AudioContext, options, targets, ({ at, position, tempo }) =>
      this.#heard(timeline, { at, position, seconds: Infinity, speed: tempo }),
    )
  }

  #heard(timeline: Timeline, stretch: Parameters<Timeline['add']>[0]): void {
    const wasWaiting = timeline.isEmpty
    timeline.add(stretch)
    if (wasWaiting) this.#options.onChange()
  }
}
