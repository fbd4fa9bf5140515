import type { PcmSource } from './pcm-source.js'

interface CachedTrack {
  name: string
  source: PcmSource
}

const keptPieces = 12

/** Pieces of tracks, kept for a while, so that going back a little or around a loop needs no network. */
export class PieceCache {
  readonly pieceFrames: number
  readonly #trackCount: number
  readonly #pieces = new Map<string, Promise<Float32Array<ArrayBuffer>[]>>()

  constructor(pieceFrames: number, trackCount: number) {
    this.pieceFrames = pieceFrames
    this.#trackCount = trackCount
  }

  read({ name, source }: CachedTrack, index: number): Promise<Float32Array<ArrayBuffer>[]> {
    const id = `${index} ${name}`
    const known = this.#pieces.get(id)
    if (known) return known
    const reading = source.read(index * this.pieceFrames, this.pieceFrames, new AbortController().signal)
    this.#pieces.set(id, reading)
    reading.catch(() => this.#pieces.delete(id))
    for (const old of this.#pieces.keys()) {
      if (this.#pieces.size <= keptPieces * this.#trackCount) break
      this.#pieces.delete(old)
    }
    return reading
  }
}
