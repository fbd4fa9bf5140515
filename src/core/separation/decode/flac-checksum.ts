/** CRC-8 of `bytes[from..to)` with the polynomial x^8 + x^2 + x + 1 (RFC 9639, 9.1.8). */
export function crc8(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0
  for (let index = from; index < to; index++) sum = table8[sum ^ bytes[index]]
  return sum
}

/** CRC-16 of `bytes[from..to)` with the polynomial x^16 + x^15 + x^2 + 1 (RFC 9639, 9.3). */
export function crc16(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0
  for (let index = from; index < to; index++) sum = ((sum << 8) & 0xffff) ^ table16[(sum >> 8) ^ bytes[index]]
  return sum
}

const table8 = remainders(8, 0x07)
const table16 = remainders(16, 0x8005)

function remainders(width: number, polynomial: number): Uint16Array {
  const top = 1 << (width - 1)
  const mask = 2 ** width - 1
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let sum = byte << (width - 8)
    for (let bit = 0; bit < 8; bit++) sum = (sum & top ? (sum << 1) ^ polynomial : sum << 1) & mask
    return sum
  })
}
