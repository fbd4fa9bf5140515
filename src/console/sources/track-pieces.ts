import type { PcmSource } from './pcm-source.js'

export interface PlayerTrack {
  name: string
  source: PcmSource
}

/** A stretch of the track, in seconds. */
export interface Loop {
  from: number
  to: number
}

/** Clicks before the song. */
export interface CountIn {
  seconds: number
  source: PcmSource
}

/** A part of all tracks. */
export interface Piece {
  tracks: Float32Array<ArrayBuffer>[][]
  frame: number
  frames: number
  /** Whether the original song is played, because the tracks are not made yet. */
  isWhole: boolean
}

/** The part to play. */
interface Part {
  /** First frame. */
  from: number
  loop: Loop | undefined
  countIn: CountIn | undefined
  signal: AbortSignal
}

/** Name of the metronome's track. No stem has such a name. */
export const clickName = '(click)'
const wholeName = '(whole)'
/** Short, so that playback begins soon after a seek. */
export const pieceSeconds = 2
const checkMs = 200

/** Cuts the tracks of a song into successive pieces; uses the song itself where they are not made yet. */
export class TrackPieces {
  readonly sampleRate: number
  readonly #whole: PlayerTrack | undefined
  readonly #pieceFrames: number
  #tracks: readonly PlayerTrack[]
  #read: ReturnType<typeof pieceCache>

  /** All tracks have the same sample rate. */
  constructor(tracks: readonly PlayerTrack[], whole?: PcmSource) {
    const [first] = tracks
    if (!first) throw new RangeError('a player needs at least one track')
    this.sampleRate = first.source.sampleRate
    this.#pieceFrames = Math.round(pieceSeconds * this.sampleRate)
    this.#whole = whole && { name: wholeName, source: whole }
    this.#tracks = tracks
    this.#read = this.#cached()
  }

  /** Names of the tracks, in the order of a piece. */
  get names(): string[] {
    return this.#all.map(({ name }) => name)
  }

  /** Frames of the tracks. */
  get made(): number {
    return Math.max(...this.#tracks.map(({ source }) => source.frames))
  }

  /** Frames that can be played: of the tracks or, while they grow, of the song. */
  get playable(): number {
    return Math.max(this.made, this.#isGrowing ? (this.#whole?.source.frames ?? 0) : 0)
  }

  /** Frames of the whole song, as far as that is known. */
  get promised(): number {
    return Math.max(this.playable, ...this.#tracks.map(({ source }) => source.promisedFrames ?? 0))
  }

  /** Replaces the tracks by others of the same song, from the next piece on. */
  replace(tracks: readonly PlayerTrack[]): void {
    this.#tracks = tracks
    this.#read = this.#cached()
  }

  async *from({ from, loop: repeated, countIn, signal }: Part): AsyncGenerator<Piece, void, void> {
    const toFrame = (seconds: number) => Math.round(seconds * this.sampleRate)
    const loop = repeated && { from: toFrame(repeated.from), to: Math.min(this.playable, toFrame(repeated.to)) }
    let frame = from
    if (countIn) yield await this.#counted(countIn, frame, signal)
    while (frame < this.playable || this.#isGrowing) {
      if (frame >= this.playable) {
        await new Promise((resolve) => setTimeout(resolve, checkMs))
        if (signal.aborted) return
        continue
      }
      const index = Math.floor(frame / this.#pieceFrames)
      // Tracks grow by whole pieces.
      const isWhole = frame >= this.made
      const limit = loop && frame < loop.to ? loop.to : isWhole ? this.playable : this.made
      const end = Math.min((index + 1) * this.#pieceFrames, limit)
      const read = await Promise.all(
        this.#all.map(async (track) =>
          track.name === clickName || (track === this.#whole) === isWhole ? this.#read(track, index) : [],
        ),
      )
      if (signal.aborted) return
      const start = frame - index * this.#pieceFrames
      const tracks = read.map((planes) => planes.map((plane) => plane.subarray(start, start + end - frame)))
      yield { tracks, frame, frames: end - frame, isWhole }
      frame = loop && end === loop.to ? loop.from : end
    }
  }

  /** The count-in as a piece. */
  async #counted({ seconds, source }: CountIn, frame: number, signal: AbortSignal): Promise<Piece> {
    const frames = Math.round(seconds * this.sampleRate)
    const clicks = await source.read(0, frames, signal)
    const tracks = this.#all.map(({ name }) => (name === clickName ? clicks : [new Float32Array(frames)]))
    return { tracks, frame: frame - frames, frames, isWhole: false }
  }

  get #all(): readonly PlayerTrack[] {
    return this.#whole ? [...this.#tracks, this.#whole] : this.#tracks
  }

  get #isGrowing(): boolean {
    return this.#tracks.some(({ source }) => source.isGrowing)
  }

  #cached(): ReturnType<typeof pieceCache> {
    return pieceCache(this.#pieceFrames, this.#tracks.length + 1)
  }
}

const keptPieces = 12

/** Reads pieces of tracks and keeps them for a while, so that going back a little or around a loop needs no network. */
function pieceCache(pieceFrames: number, trackCount: number) {
  const pieces = new Map<string, Promise<Float32Array<ArrayBuffer>[]>>()
  return ({ name, source }: PlayerTrack, index: number): Promise<Float32Array<ArrayBuffer>[]> => {
    const id = `${index} ${name}`
    const known = pieces.get(id)
    if (known) return known
    const reading = source.read(index * pieceFrames, pieceFrames, new AbortController().signal)
    pieces.set(id, reading)
    reading.catch(() => pieces.delete(id))
    for (const old of pieces.keys()) {
      if (pieces.size <= keptPieces * trackCount) break
      pieces.delete(old)
    }
    return reading
  }
}
