export interface FlacFormat {
  sampleRate: number
  channels: number
  bits: 16 | 24
}

/** A channel of a block, or the mean or the difference of two. */
export interface Signal {
  /** Index of its plane and of its sums. */
  plane: number
  bits: number
}

/** A way to code the channels (RFC 9639, 9.1.3), and the signals that it codes. */
export interface ChannelWay {
  assignment: number
  signals: readonly Signal[]
}

export function channelWays({ channels, bits }: FlacFormat): ChannelWay[] {
  const plain = Array.from({ length: channels }, (_, plane) => ({ plane, bits }))
  const ways = [{ assignment: channels - 1, signals: plain }]
  if (channels !== 2) return ways
  const [left, right] = plain
  const middle = { plane: 2, bits }
  const side = { plane: 3, bits: bits + 1 }
  return [
    ...ways,
    { assignment: 8, signals: [left!, side] },
    { assignment: 9, signals: [side, right!] },
    { assignment: 10, signals: [middle, side] },
  ]
}

/** The number of channels and, of two, also their mid and side. */
export function planesOf(channels: number): number {
  return channels === 2 ? 4 : channels
}
