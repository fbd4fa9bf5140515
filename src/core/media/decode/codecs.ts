import { StemworkError } from '../../engine/errors.js'
import type { CodecDecoder } from './codec-stream.js'
import { aacSetup } from './mp4/aac-setup.js'

/** Creates the decoder of that name from `audio-decode`, which is loaded on first use. */
export async function loadCodec(codec: string): Promise<CodecDecoder> {
  const { default: codecs } = await import('audio-decode')
  const create = (codecs as unknown as Record<string, (() => Promise<CodecDecoder>) | undefined>)[codec]
  if (!create) throw new StemworkError('INTERNAL_ERROR', `The installed audio-decode has no decoder named "${codec}".`)
  const decode = await create()
  if (codec !== 'mp4') return decode
  let isFirst = true
  const begin = (bytes?: Uint8Array) => {
    const known = isFirst && bytes ? withKnownSetup(bytes) : bytes
    isFirst = false
    return decode(known)
  }
  return Object.assign(begin, { free: () => decode.free() })
}

/**
 * The decoder of AAC refuses type 29 of setups, HE-AAC v2, but knows type 5, HE-AAC, whose setup has the same fields
 * (ISO/IEC 14496-3, 1.6.2.1). It plays both without parametric stereo.
 */
function withKnownSetup(index: Uint8Array): Uint8Array {
  const known = index.slice()
  try {
    const setup = aacSetup(known)
    if (setup[0]! >> 3 === 29) setup[0]! &= 0x3f
  } catch {
    // No AAC.
  }
  return known
}
