import type { PcmSource } from './pcm-source.js'

export interface PlayerTrack {
  name: string
  source: PcmSource
}

/** What the player uses of an `AudioContext`. */
export type PlayerContext = Pick<
  AudioContext,
  'currentTime' | 'createBuffer' | 'createBufferSource' | 'createGain' | 'destination' | 'resume' | 'close'
>

export interface PlayerOptions {
  /** Called when it plays, waits, pauses or ends. */
  onChange(): void
  onError(error: unknown): void
  createContext?(sampleRate: number): PlayerContext
}

/** Small, so that playing begins soon after a seek. */
const pieceSeconds = 2
const aheadSeconds = 8
/** Time to hand a piece of every track to the audio hardware. */
const leadSeconds = 0.08
const checkMs = 200
const fadeSeconds = 0.015
const keptPieces = 12

interface Run {
  stop: AbortController
  nodes: Set<AudioBufferSourceNode>
  /** Time of the context at which the track's time `from` is heard; undefined while the first piece is awaited. */
  startedAt: number | undefined
  from: number
}

/**
 * Plays tracks locked together, sample for sample: the pieces of all tracks for a stretch of time are started at the same instant
 * of one audio clock, and none before all are there.
 */
export class Player {
  readonly duration: number
  readonly #tracks: readonly PlayerTrack[]
  readonly #options: PlayerOptions
  readonly #sampleRate: number
  readonly #frames: number
  readonly #volumes = new Map<string, number>()
  readonly #gains = new Map<string, GainNode>()
  readonly #pieces = new Map<string, Promise<Float32Array<ArrayBuffer>[]>>()
  #context: PlayerContext | undefined
  #run: Run | undefined
  #restAt = 0

  /** All tracks have the same sample rate. */
  constructor(tracks: readonly PlayerTrack[], options: PlayerOptions) {
    this.#tracks = tracks
    this.#options = options
    const [first] = tracks
    if (!first) throw new RangeError('a player needs at least one track')
    this.#sampleRate = first.source.sampleRate
    this.#frames = Math.max(...tracks.map(({ source }) => source.frames))
    this.duration = this.#frames / this.#sampleRate
  }

  get isPlaying(): boolean {
    return this.#run !== undefined
  }

  /** Asked to play, but the samples are still on their way. */
  get isWaiting(): boolean {
    return this.#run !== undefined && this.#run.startedAt === undefined
  }

  /** Seconds. */
  get position(): number {
    const run = this.#run
    if (!run) return this.#restAt
    if (run.startedAt === undefined || !this.#context) return run.from
    return Math.min(this.duration, run.from + Math.max(0, this.#context.currentTime - run.startedAt))
  }

  /** Call it from a click or a key press: browsers allow no sound before one. */
  play(): void {
    if (this.#run) return
    this.#context ??= this.#open()
    void this.#context.resume()
    const from = this.#restAt >= this.duration ? 0 : this.#restAt
    const run: Run = { stop: new AbortController(), nodes: new Set(), startedAt: undefined, from }
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
    this.#end()
    this.#options.onChange()
  }

  seek(seconds: number): void {
    const wasPlaying = this.isPlaying
    this.#end()
    this.#restAt = Math.max(0, Math.min(this.duration, seconds))
    if (wasPlaying && this.#restAt < this.duration) this.play()
    else this.#options.onChange()
  }

  /** @param volume 0..1 */
  setVolume(name: string, volume: number): void {
    this.#volumes.set(name, volume)
    const context = this.#context
    if (context) this.#gains.get(name)?.gain.setTargetAtTime(volume, context.currentTime, fadeSeconds)
  }

  close(): void {
    this.#end()
    void this.#context?.close()
    this.#context = undefined
  }

  #open(): PlayerContext {
    // At the tracks' own rate no piece is resampled, so pieces join without a click.
    const create =
      this.#options.createContext ?? ((sampleRate) => new AudioContext({ sampleRate, latencyHint: 'playback' }))
    const context = create(this.#sampleRate)
    for (const { name } of this.#tracks) {
      const gain = context.createGain()
      gain.gain.value = this.#volumes.get(name) ?? 1
      gain.connect(context.destination)
      this.#gains.set(name, gain)
    }
    return context
  }

  #end(): void {
    this.#run?.stop.abort()
    for (const node of this.#run?.nodes ?? []) node.stop()
    this.#run = undefined
  }

  async #feed(run: Run, context: PlayerContext): Promise<void> {
    const { signal } = run.stop
    const pieceFrames = Math.round(pieceSeconds * this.#sampleRate)
    let frame = Math.round(run.from * this.#sampleRate)
    let firstFrame = frame
    while (frame < this.#frames) {
      const index = Math.floor(frame / pieceFrames)
      const end = Math.min((index + 1) * pieceFrames, this.#frames)
      const planes = await Promise.all(this.#tracks.map((track) => this.#piece(track, index, pieceFrames)))
      if (signal.aborted) return
      const due = run.startedAt === undefined ? -1 : run.startedAt + (frame - firstFrame) / this.#sampleRate
      if (due < context.currentTime + leadSeconds / 4) {
        // The beginning, or the network was too slow: all tracks go on together from here.
        run.from = frame / this.#sampleRate
        firstFrame = frame
        run.startedAt = Math.ceil((context.currentTime + leadSeconds) * this.#sampleRate) / this.#sampleRate
        this.#options.onChange()
      }
      const at = (run.startedAt ?? 0) + (frame - firstFrame) / this.#sampleRate
      this.#tracks.forEach(({ name }, track) =>
        this.#schedule(run, context, name, planes[track] ?? [], frame - index * pieceFrames, at),
      )
      frame = end
      const heardUntil = (run.startedAt ?? 0) + (frame - firstFrame) / this.#sampleRate
      while (heardUntil - context.currentTime > aheadSeconds) {
        await new Promise((resolve) => setTimeout(resolve, checkMs))
        if (signal.aborted) return
      }
    }
    while (this.position < this.duration) {
      await new Promise((resolve) => setTimeout(resolve, checkMs))
      if (signal.aborted) return
    }
    this.#end()
    this.#restAt = 0
    this.#options.onChange()
  }

  #schedule(
    run: Run,
    context: PlayerContext,
    name: string,
    planes: Float32Array<ArrayBuffer>[],
    skipFrames: number,
    at: number,
  ): void {
    const frames = (planes[0]?.length ?? 0) - skipFrames
    const gain = this.#gains.get(name)
    if (frames <= 0 || !gain) return
    const buffer = context.createBuffer(planes.length, frames, this.#sampleRate)
    planes.forEach((plane, channel) => buffer.copyToChannel(plane.subarray(skipFrames), channel))
    const node = context.createBufferSource()
    node.buffer = buffer
    node.connect(gain)
    node.onended = () => {
      node.disconnect()
      run.nodes.delete(node)
    }
    run.nodes.add(node)
    node.start(at)
  }

  /** Kept for a while, so that going back a little needs no network. */
  #piece({ name, source }: PlayerTrack, index: number, frames: number): Promise<Float32Array<ArrayBuffer>[]> {
    const id = `${index} ${name}`
    const known = this.#pieces.get(id)
    if (known) return known
    const reading = source.read(index * frames, frames, new AbortController().signal)
    this.#pieces.set(id, reading)
    reading.catch(() => this.#pieces.delete(id))
    for (const old of this.#pieces.keys()) {
      if (this.#pieces.size <= keptPieces * this.#tracks.length) break
      this.#pieces.delete(old)
    }
    return reading
  }
}
