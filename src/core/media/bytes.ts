export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}

/** Big-endian. */
export function setUint24(view: DataView, at: number, value: number): void {
  view.setUint8(at, value >> 16)
  view.setUint16(at + 1, value)
}

/** A number of four bytes with seven bits each, as ID3 tags state lengths. */
export function synchsafe(bytes: Uint8Array, at: number): number {
  return bytes.subarray(at, at + 4).reduce((value, byte) => (value << 7) | (byte & 0x7f), 0)
}

/** The bytes from `from` to `to` as characters with the same numbers (Latin-1). */
export function latin1(bytes: Uint8Array, from = 0, to = bytes.length): string {
  let text = ''
  for (let at = from; at < to; at += mostArguments)
    text += String.fromCharCode(...bytes.subarray(at, Math.min(at + mostArguments, to)))
  return text
}

const mostArguments = 8192

/** The inverse of `latin1`. */
export function latin1Bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}
