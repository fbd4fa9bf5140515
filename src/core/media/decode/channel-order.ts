import { latin1 } from '../bytes.js'
import type { AudioStream, Speaker } from '../dsp/audio-stream.js'

interface Order {
  /** Stored position of each channel, in the order of WAVE. */
  from: readonly number[]
  /** If WAVE's usual channels for that count are others. */
  speakers?: readonly Speaker[]
}

/** By channel count (the Vorbis I specification, 4.3.9; also that of Opus: RFC 7845, 5.1.1.2). */
const vorbis: Record<number, Order> = {
  3: { from: [0, 2, 1] },
  5: { from: [0, 2, 1, 3, 4] },
  6: { from: [0, 2, 1, 5, 3, 4] },
  7: { from: [0, 2, 1, 6, 5, 3, 4] },
  8: { from: [0, 2, 1, 7, 5, 6, 3, 4] },
}

/** By channel count (Apple's ALACMagicCookieDescription.txt): the centre comes first. */
const alac: Record<number, Order> = {
  3: { from: [1, 2, 0] },
  4: { from: [1, 2, 0, 3], speakers: ['left', 'right', 'centre', 'surroundCentre'] },
  5: { from: [1, 2, 0, 3, 4] },
  6: { from: [1, 2, 0, 5, 3, 4] },
  7: { from: [1, 2, 0, 6, 5, 3, 4] },
  8: {
    from: [3, 4, 0, 7, 5, 6, 1, 2],
    speakers: ['left', 'right', 'centre', 'lfe', 'surroundLeft', 'surroundRight', 'left', 'right'],
  },
}

/**
 * Codecs whose decoders leave the channels in the order in which they are stored: in Matroska, and in MP4 (in small
 * letters).
 */
const orders: Partial<Record<string, Record<number, Order>>> = { VORBIS: vorbis, OPUS: vorbis, ALAC: alac, alac }

/** Puts the channels into the order of WAVE. */
export function inWaveOrder(stream: AudioStream, codec: string | undefined): AudioStream {
  const order = orders[codec ?? '']?.[stream.channelCount]
  if (!order) return stream
  return {
    ...stream,
    speakers: order.speakers,
    blocks: (async function* () {
      for await (const { channels } of stream.blocks) yield { channels: order.from.map((stored) => channels[stored]!) }
    })(),
  }
}

/**
 * The codec of the first sound track of a Matroska file, by its identifier (RFC 9559, 5.1.4.1.21), if it is one whose
 * order differs.
 */
export function matroskaCodec(head: Uint8Array): string | undefined {
  return /\x86[\x80-\xff]A_(VORBIS|OPUS|ALAC|)/.exec(latin1(head))?.[1]
}
