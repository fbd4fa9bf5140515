interface PageOptions {
  sequence: number
  /** 1: continued, 2: first page, 4: last page. */
  flags?: number
  granule?: bigint
  serial?: number
}

/** An Ogg page with whole packets and a correct checksum. */
export function oggPage(
  packets: readonly Uint8Array[],
  { sequence, flags = 0, granule = 0n, serial = 7 }: PageOptions,
): Buffer {
  const lacing = packets.flatMap(({ length }) => [...Array<number>(Math.floor(length / 255)).fill(255), length % 255])
  const head = Buffer.alloc(27)
  head.write('OggS')
  head[5] = flags
  head.writeBigInt64LE(granule, 6)
  head.writeUInt32LE(serial, 14)
  head.writeUInt32LE(sequence, 18)
  head[26] = lacing.length
  const page = Buffer.concat([head, Buffer.from(lacing), ...packets])
  page.writeUInt32LE(checksum(page), 22)
  return page
}

/** Corrects the checksum of a changed page. */
export function withChecksum(page: Buffer): void {
  page.writeUInt32LE(0, 22)
  page.writeUInt32LE(checksum(page), 22)
}

/** Computed bit by bit, unlike the tables that it checks. */
function checksum(bytes: Uint8Array): number {
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte << 24
    for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ 0x04c1_1db7 : sum << 1
  }
  return sum >>> 0
}
