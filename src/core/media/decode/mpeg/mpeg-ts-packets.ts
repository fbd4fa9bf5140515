import { CustomSource, EncodedPacketSink, Input, MPEG_TS } from 'mediabunny'
import type { ReadableBytes } from '../file-bytes.js'

// The build takes the package's parser into this file (tsup.config.ts), so that hosts need not install it.

export interface PacketTrack {
  /** As mediabunny names it; null for those that it does not know. */
  codec: string | null
  /** The sound as it is without the transport stream: frames of ADTS, MPEG audio or AC-3. */
  packets: AsyncGenerator<Uint8Array, void, undefined>
}

/**
 * The sound track of an MPEG transport stream that players choose; `undefined` if it has none.
 *
 * @throws Error, also while packets are read, where the stream is damaged
 */
export async function packetTrack({ size, read }: ReadableBytes): Promise<PacketTrack | undefined> {
  const source = new CustomSource({
    getSize: () => size,
    read: (start, end) => read(start, end - start),
    // Else each packet of 188 bytes is a read of its own.
    prefetchProfile: 'fileSystem',
  })
  const input = new Input({ source, formats: [MPEG_TS] })
  const track = await input.getPrimaryAudioTrack()
  if (!track) return undefined
  return { codec: track.codec, packets: packetsOf(new EncodedPacketSink(track), input) }
}

async function* packetsOf(sink: EncodedPacketSink, input: Input): PacketTrack['packets'] {
  try {
    for await (const { data } of sink.packets()) yield data
  } finally {
    input.dispose()
  }
}
