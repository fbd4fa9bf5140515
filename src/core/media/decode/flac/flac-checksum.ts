/** CRC-8 of `bytes[from..to)` with the polynomial x^8 + x^2 + x + 1 (RFC 9639, 9.1.8). */
export function crc8(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0
  for (let index = from; index < to; index++) sum = table8[sum ^ bytes[index]!]!
  return sum
}

/** CRC-16 of `bytes[from..to)` with the polynomial x^16 + x^15 + x^2 + 1 (RFC 9639, 9.3). */
export function crc16(bytes: Uint8Array, from: number, to: number): number {
  const [last, third, second, first] = tables16
  let sum = 0
  let index = from
  for (; index + 4 <= to; index += 4) {
    sum =
      first![(sum >> 8) ^ bytes[index]!]! ^
      second![(sum & 0xff) ^ bytes[index + 1]!]! ^
      third![bytes[index + 2]!]! ^
      last![bytes[index + 3]!]!
  }
  for (; index < to; index++) sum = ((sum << 8) & 0xffff) ^ last![(sum >> 8) ^ bytes[index]!]!
  return sum
}

const table8 = remainders(8, 0x07)
/** For a byte followed by 0 to 3 bytes, so that four bytes are processed per step. */
const tables16 = [0, 1, 2, 3].map((following) => remainders(16, 0x8005, following))

function remainders(width: number, polynomial: number, following = 0): Uint16Array {
  const top = 1 << (width - 1)
  const mask = 2 ** width - 1
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let sum = byte << (width - 8)
    for (let bit = 0; bit < 8 * (1 + following); bit++) sum = (sum & top ? (sum << 1) ^ polynomial : sum << 1) & mask
    return sum
  })
}
