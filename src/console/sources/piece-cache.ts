import type { PcmSource } from './pcm-source.js'

export interface PlayerTrack {
  name: string
  source: PcmSource
}

const keptPieces = 12

/** Reads pieces of tracks and keeps them for a while, so that going back a little or around a loop needs no network. */
export function pieceCache(pieceFrames: number, trackCount: number) {
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
