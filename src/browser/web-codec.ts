import type { CodecDecoder } from '../core/media/decode/codec-stream.js'

/** Splits a file into packets for a browser's decoder, which knows codecs but no containers. */
export interface Packets {
  /** Known with the first packet. */
  readonly config: AudioDecoderConfig
  /** Samples of the song, at the rate of `config`: encoders pad both ends. */
  readonly window: PacketWindow
  /** Returns the packets that these bytes complete. */
  take(bytes: Uint8Array): Uint8Array[]
}

export interface PacketWindow {
  start: number
  /** Infinity where the file does not state it. */
  length: number
}

/** Packets queued in the decoder; more would only fill the memory. */
const mostQueued = 64

/** Wraps a browser decoder (WebCodecs) in the interface of the server's decoders. */
export function webCodec(packets: Packets): CodecDecoder {
  const decoded: AudioData[] = []
  let decoder: AudioDecoder | undefined
  let failure: Error | undefined
  let packetCount = 0
  let position = 0

  async function start(): Promise<AudioDecoder> {
    const { config } = packets
    if (typeof AudioDecoder !== 'function' || !(await AudioDecoder.isConfigSupported(config)).supported)
      throw new Error(`not supported by this browser: ${config.codec}`)
    const made = new AudioDecoder({ output: (data) => decoded.push(data), error: (error) => (failure = error) })
    made.configure(config)
    return made
  }

  const decode = async (bytes?: Uint8Array) => {
    for (const data of bytes ? packets.take(bytes) : []) {
      decoder ??= await start()
      while (!failure && decoder.decodeQueueSize > mostQueued) await turn()
      if (failure) break
      // Timestamps only have to increase.
      decoder.decode(new EncodedAudioChunk({ type: 'key', timestamp: packetCount++ * 1000, data }))
    }
    if (!bytes && !failure) await decoder?.flush()
    if (failure && (!bytes || decoded.length === 0)) throw failure
    return cut(joined(decoded.splice(0)))
  }

  /** Cuts off samples before and after the song. */
  function cut({ channelData, sampleRate }: ReturnType<typeof joined>) {
    const length = channelData[0]?.length ?? 0
    // A decoder may double the rate of its stream (HE-AAC).
    const scale = sampleRate / packets.config.sampleRate || 1
    const { start: first, length: whole } = packets.window
    const from = Math.min(length, Math.max(0, Math.round(first * scale) - position))
    const to = Math.max(from, Math.min(length, Math.round((first + whole) * scale) - position))
    position += length
    return { channelData: channelData.map((plane) => plane.subarray(from, to)), sampleRate }
  }

  const free = () => {
    for (const data of decoded) data.close()
    if (decoder && decoder.state !== 'closed') decoder.close()
  }
  return Object.assign(decode, { free })
}

/** Yields, so that the browser can deliver decoded audio. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1))
}

/** Joins the samples of all parts, and frees their memory. */
function joined(parts: readonly AudioData[]): { channelData: Float32Array[]; sampleRate: number } {
  const [{ numberOfChannels, sampleRate } = { numberOfChannels: 0, sampleRate: 0 }] = parts
  const length = parts.reduce((sum, { numberOfFrames }) => sum + numberOfFrames, 0)
  const channelData = Array.from({ length: numberOfChannels }, () => new Float32Array(length))
  let at = 0
  for (const part of parts) {
    if (part.numberOfChannels !== numberOfChannels || part.sampleRate !== sampleRate)
      throw new Error('The sound changes its rate or its channels.')
    // Firefox decodes the first packet of Vorbis to no samples, and refuses to copy none.
    if (part.numberOfFrames > 0)
      for (const [planeIndex, plane] of channelData.entries())
        part.copyTo(plane.subarray(at), { planeIndex, format: 'f32-planar' })
    at += part.numberOfFrames
    part.close()
  }
  return { channelData, sampleRate }
}
