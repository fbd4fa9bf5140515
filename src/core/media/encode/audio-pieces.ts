/** Samples per channel that go to the thread of an encoder at once. */
export const pieceSamples = 65_536

export function audioPieceBytes(channels: number): number {
  return channels * pieceSamples * Float32Array.BYTES_PER_ELEMENT
}

/** The pieces in a memory that two threads share, each with one plane per channel. */
export function audioPieces(audio: SharedArrayBuffer, channels: number): Float32Array[][] {
  return Array.from({ length: audio.byteLength / audioPieceBytes(channels) }, (_, piece) =>
    Array.from({ length: channels }, (_, channel) => {
      const at = piece * audioPieceBytes(channels) + channel * pieceSamples * Float32Array.BYTES_PER_ELEMENT
      return new Float32Array(audio, at, pieceSamples)
    }),
  )
}
