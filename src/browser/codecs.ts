import type { CodecDecoder } from '../core/media/decode/codec-stream.js'
import { UndecodedError } from '../core/media/decode/undecoded.js'

/** The decoders of the server that may be part of this package, each a script that is loaded when it is needed. */
const decoders: Record<string, (() => Promise<{ default: unknown }>) | undefined> = {}

/** The decoder of that name in `audio-decode`. */
export async function loadCodec(codec: string): Promise<CodecDecoder> {
  const load = decoders[codec]
  if (!load) throw new UndecodedError(`The file is ${codec}, which cannot be decoded on this device.`)
  return (await load()) as unknown as CodecDecoder
}
