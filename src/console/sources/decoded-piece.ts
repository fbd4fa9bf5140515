/**
 * The piece of `length` samples that begins `beforeEnd` samples before the end of the decoded ones. Counted from the
 * end, because samples that a decoder drops for lack of earlier packets are missing at the beginning.
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
