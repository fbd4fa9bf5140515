import { StemworkError } from '../../engine/errors.js'
import type { CodecDecoder } from './codec-stream.js'

/** Creates the decoder of that name from `audio-decode`, which is loaded on first use. */
export async function loadCodec(codec: string): Promise<CodecDecoder> {
  const { default: codecs } = await import('audio-decode')
  const create = (codecs as unknown as Record<string, (() => Promise<CodecDecoder>) | undefined>)[codec]
  if (!create) throw new StemworkError('INTERNAL_ERROR', `The installed audio-decode has no decoder named "${codec}".`)
  return create()
}
