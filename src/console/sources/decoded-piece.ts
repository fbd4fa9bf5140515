/**
 * The piece of `length` samples that begins `beforeEnd` samples before the end of what was decoded. Counted from the
 * end, because what a decoder leaves out for lack of earlier packets is missing at the beginning.
 */
export function decodedPiece(
  decoded: readonly Float32Array<ArrayBuffer>[],
  beforeEnd: number,
  length: number,
): Float32Array<ArrayBuffer>[] {
  const at = (decoded[0]?.length ?? 0) - beforeEnd
  return decoded.map((plane) => {
    const piece = new Float32Array(length)
    if (-at < length) piece.set(plane.subarray(Math.max(0, at), Math.max(0, at + length)), Math.max(0, -at))
    return piece
  })
}
