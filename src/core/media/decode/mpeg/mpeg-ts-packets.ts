import { CustomSource, EncodedPacketSink, Input, MPEG_TS } from 'mediabunny'
import type { ReadableBytes } from '../file-bytes.js'

// The build bundles the package's parser into this file (tsup.config.ts), so that hosts need not install it.

export interface PacketTrack {
  /** mediabunny's name for the codec; null for codecs that it does not know. */
  codec: string | null
  /** The sound without the transport stream: frames of ADTS, MPEG audio or AC-3. */
  packets: AsyncGenerator<Uint8Array, void, undefined>
}

/**
 * Returns the sound track of an MPEG transport stream that players choose; `undefined` if it has none.
 *
 * @throws Error, also while packets are read, where the stream is damaged
 */
export async function packetTrack({ size, read }: ReadableBytes): Promise<PacketTrack | undefined> {
  const source = new CustomSource({
    getSize: () => size,
    read: (start, end) => read(start, end - start),
    // Otherwise each packet of 188 bytes would be read separately.
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
