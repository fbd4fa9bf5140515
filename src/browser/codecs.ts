import type { CodecDecoder } from '../core/media/decode/codec-stream.js'
import { AacPackets } from './aac-packets.js'
import { Mp3Packets } from './mp3-packets.js'
import { OpusPackets, VorbisPackets } from './ogg-packets.js'
import { type Packets, webCodec } from './web-codec.js'

/**
 * Formats that the browser decodes. The server's decoders are not included: they are GPL and LGPL code, which hosts
 * would have to redistribute.
 */
const formats: Record<string, (() => Packets) | undefined> = {
  mp3: () => new Mp3Packets(),
  mp4: () => new AacPackets(),
  opus: () => new OpusPackets(),
  oga: () => new VorbisPackets(),
}

/** Returns a decoder by the name that `audio-decode` has for its format. */
export function loadCodec(codec: string): Promise<CodecDecoder> {
  const packets = formats[codec]
  if (packets) return Promise.resolve(webCodec(packets()))
  return Promise.reject(new Error(`not supported on this device: ${codec}`))
}
